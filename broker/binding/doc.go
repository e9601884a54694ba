// Package binding binds the clients of this server in the store: a client's record names the
// server, and so does the entry in the list of the client's user. A [Binder] binds, renews,
// compares and ends bindings. It also knows which binds are under way or have an unknown outcome.
//
// It knows nothing of connections: [Sessions] is what it needs of them.
//
// Locks: a client's lock ([Binder.Lock]) is held during store calls, and serializes the calls
// about the client. The other mutexes of the package guard only fields; docs/design.md has the
// order of all locks.
package binding
