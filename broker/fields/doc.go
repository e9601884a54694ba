// Package fields turns the change of a publish into an update of a channel's state. [Build] checks
// everything that does not depend on the current state: names, values, the rules of the namespace
// and the limits of one change. The store checks the rest, see [state.State.Apply].
package fields
