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
// the last one, if Compare finds another version in the store or if the store failed over, the
// roster is read again, and the watchers receive the difference to the old view. So a watcher never
// receives the same join twice and never misses a leave.
//
// # Aliases
//
// A namespace can have a field with an alias for each user, such as the number of a player. Its
// channels show the alias in place of client ids:
//
//   - JoinAs notes a client of this server in the aliasTable. A write of the roster first reads the
//     aliases that it does not know, and writes one member for each alias: see aliasChange. So the
//     roster has no client ids, and the union of the rosters has each alias once.
//   - FieldsChanged has the aliases read again that a change of the state concerns. A server with
//     clients in a channel receives all its changes.
//   - A View hides members that are no aliases. They are of servers with older access rules.
//
// # Here values
//
// A client can show a small value, such as a cursor, to the watchers of a channel. Values are soft
// state. Each server holds those of its clients and those that it has heard of, and sends those of
// its clients to the other servers that have members of the channel:
//
//   - Presence.SetHere sets a value; Leave and EndHere end it. sendHere sends all changes of a
//     channel in one batch, at most once per hereInterval.
//   - receiveHere applies the values of another server. The generation of the client's binding
//     and a number order the values of a client, so hints may be late, repeated or out of order.
//   - tickHere sends unchanged values again, ended ones included, every hereResend ticks. A server
//     ends the values that it does not hear of for hereTTL. So a lost hint only causes a delay.
//   - showLocked decides what watchers receive: only values of members, of the client's newest
//     connection, and not in a large channel. Watchers pull the changes since their last one, so a
//     backed-up watcher receives only the newest value of each client.
//
// A channel without values costs a join or a leave one atomic load.
//
// # Files
//
// Files in reading order: write.go, here_send.go, here_hint.go, user_watch.go, here_watch.go,
// here_set.go, page.go, count.go, alias_roster.go, read.go, presence.go, compare.go,
// compare_users.go, user.go, watch.go, here.go, view.go, alias.go, members.go, coalesce.go,
// update.go, pending.go.
package presence
