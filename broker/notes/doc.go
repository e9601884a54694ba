// Package notes finds what a server has changed in the store without its hints. The server notes
// the names of what it changes, in the store, before it changes them. If its hints may be lost,
// because it was killed or a link broke, the other servers read its notes, and then only the
// queues, rosters and users that are named there and that they hold.
//
// # What is noted
//
//	kind  name     noted by                                            hint
//	c     channel  appends, erasures, state steps, loss markers        peer.Channel, ChannelEntry
//	q     client   appends, binds, loss markers                        peer.Client, peer.Supersede
//	r     channel  changes of the server's own roster                  peer.Presence
//	u     user     binds of the user's clients and their ends          peer.User
//
// An acknowledgement is not noted: its hint only makes room in a window, and a session with a full
// window reads the store at each tick. Nor are the values of `here`, which are not stored.
//
// A pipeline to a master begins with one ZADD of an [Entry] to nt_{TAG}:<server>: the number of
// the note as score, and the names. Calls that share the pipeline share the note; so do the
// targets of one run of a script. TAG is a number whose slot is on the master, on a single Redis
// 0. The lease of the server lists the tags before their first use (Journal.Describe), since a
// reader that finds no key could not tell a server without notes from one whose key it does not
// know. A process that takes a new id keeps its keys and its numbers.
//
// The member "floor" of a key has the score 2^51 plus the floor: a reader above it finds all
// notes. It is at the end of each range, so one ZRANGEBYSCORE for each key returns the notes and
// whether they are complete. Without that member they are not.
//
// # Settled
//
// [Writer.Settled] is the highest number up to which all notes are settled: their writes are
// answered, and their hints have been handed to the links, or were dropped there and counted. A
// caller opens a [Span] before its writes and closes it after its hints. The span starts at the
// newest number of that moment, so its notes are above it, and the first open span holds the
// number back. An unknown outcome keeps its span until the owners are notified or the binding is
// read again.
//
// The sender of a link reads Settled before it takes the queue of hints. So these hints are in
// that batch or in an earlier one, or the numbers of the batches show that some are missing. If
// one queue becomes several batches, only the last may carry the number. A receiver that has
// missed none needs only the notes above the last number that it heard.
//
// # Why nothing is missed
//
// Let a write W of server A concern something that server B holds, and let its hint not reach B.
//
//   - Redis executes a pipeline in order on one connection. So W is not executed before its note.
//     If the connection breaks, W was not executed, or its note was.
//   - A script that Redis does not know (NOSCRIPT) is sent again in a second pipeline. It begins
//     with the same note, which changes nothing if it is there: under Sentinel, the second
//     connection may go to a master that was promoted since and has lost the first one.
//   - Durable writes have lanes and pipelines of their own, with their own notes. They are not
//     ordered with other lanes, and need not be: each write has its note in its own pipeline.
//   - In a Cluster the pipeline goes to the node itself and not through the Cluster client, which
//     would send a redirected write to another master, away from its note. A write that is refused
//     with MOVED or ASK was not executed. It goes into a pipeline to the named node, which begins
//     with a note of its own under the key of that node (redispipe: redirect.go).
//   - A replica has a prefix of the writes of its master. So where W survives a failover or a
//     restart of Redis, its note does, too. The new master has the slots of the old one, and with
//     them the key: the notes go on there under the same tag.
//   - The number of W's note is above what B heard: W's span was open, since its hint was not
//     handed to the link; or it was, and the numbers of the batches show the loss.
//   - B reads the notes, and then what they name. If W is executed only after B has read, W's note
//     is above the settled number in each note that B has found, as W was not answered when they
//     were written. So W is above the position to which this reading moves B, and the next one
//     finds it. B reads as long as it is in doubt, and once more after A is unlisted, when a late
//     bind of A is refused and its connections are gone.
//
// Where the notes may not be complete, Since says so, and the caller compares everything:
//
//   - Notes are kept for 20 s, and 65,536 names under each key. Before older ones are removed, the
//     floor is raised. The time is that of the writer's monotonic clock. A key expires 60 s after
//     its last renewal, and the floor with it.
//   - If Redis refuses a note (no memory, a slot has moved), the floor is removed before the
//     callers of the writes have their answers, or else by the next pipeline. The next beat starts
//     again, with a floor above all that was not noted. Writes without a note take a number for
//     that purpose. One case is left: Redis refuses the note for lack of memory, accepts a write
//     that needs none, and the server is killed before it can remove the floor. Such writes are
//     unbinds and the ends of connections, which readers also find when the server is unlisted. A
//     slot that has moved is found by the next rule.
//   - In a Cluster the reader reads the slots after the notes. If a master has none of the tags,
//     slots have moved. One node answers for all; it learns of a move within about a second.
//   - A master for which there is no tag yet is such a master, too. A tag is never given up: the
//     notes under it may still be needed.
//
// What a server without the feature stores is not noted: its lease lists no keys.
//
// # Cost
//
// With repeat set, a name whose note was confirmed less than that ago is not noted again. The
// notes of that time then do not settle, so a reader reads as much more.
//
// # Limits
//
//	notes are kept                20 s to 25 s
//	names under a key             65,536
//	TTL of a key                  60 s, renewed every 20 s
//	keys of a process             256
//	positions of a Reader         4,096 servers
package notes
