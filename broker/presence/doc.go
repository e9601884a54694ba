// Package presence tracks which clients are in a channel. It writes the joins and leaves of this
// server's clients to the store. It also watches a channel's joins and leaves on all servers, if a
// client asked for them.
//
// Each server has one roster per channel in the store, and only that server writes it. The members
// of a channel are the union of the rosters of the servers that hold a lease. So the clients of a
// dead server disappear when its lease ends.
//
// Joins and leaves are not messages and are not stored. A server with watchers keeps a view of the
// channel: all its rosters, with their versions. Each change arrives as a hint and is applied to
// the view; the watchers receive the difference. Hints may be lost. If a version does not follow
// the last one, if a hint was missed or if the store failed over, the roster is read again, and the
// watchers receive the difference to the old view. So a watcher never receives the same join twice
// and never misses a leave.
package presence
