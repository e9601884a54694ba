// Package namespace decides what a client may do on a channel. A [Set] holds one [Rule] for each
// namespace: a channel, or a prefix of channel names. The rule with the longest matching prefix
// decides. A channel without a matching rule is closed.
//
// A rule also holds a [FieldRule] for each pattern of names of fields. [Set.DecideField] and
// [Set.AllowsField] decide whether a client may write a field of the channel's state.
//
// Sessions, the HTTP API and the command `broker check` call [Set.Decide], or [Set.Allows], which
// does not explain the decision. Both depend on their arguments and the Set only, so the tables of
// their tests show all their behaviour.
//
// Names are compared byte by byte, without case folding, Unicode normalisation or path resolution.
// Two names that only look alike are different.
package namespace
