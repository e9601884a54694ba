// Package namespace decides what a client may do on a channel. A [Set] holds one [Rule] for each
// prefix of channel names; the longest one that fits a name decides, and a name that none fits is closed.
//
// [Set.Decide] (and [Set.Allows], the same without words) is the only place where this is decided: sessions, the HTTP API and the command
// `broker check` all ask it. It keeps no state and calls nobody, so its whole behaviour is in the tables
// of its tests.
//
// Names are compared byte by byte: no case is folded, no Unicode form normalised, no ".." resolved. What
// only looks like another name is another name.
package namespace
