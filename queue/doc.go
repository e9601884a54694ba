// Package queue keeps what clients have not received yet: a zset per channel, a list per
// client, and lists of client requests for the backend's workers. [Redis] is
// shared by several servers, [Memory] serves a single process.
//
// # Keys
//
// Braces are literal: they are hash tags, so that everything of one channel or one client
// is in one slot of a Redis Cluster and one script moves it. Options.Prefix stands before
// every key. Names must be free of braces.
//
//	key                      type    holds                                    bounded by
//	mq_ch_{channel}          ZSET    <id>:<json>, score id                    append: ChannelCap 10,000, ChannelMaxBytes 8 MiB,
//	                                                                          ChannelTTL 1 h; TrimChannel: what the janitor says
//	mq_m_{channel}           HASH    last, floor, bytes, lost, hole, until    MetaTTL 6 h after the messages, and after KeepPositions
//	mq_k_{channel}:<key>     STRING  id stored under an idempotency key       KeyTTL 10 min
//	c_{client}               HASH    user, server, generation, since, last,   RecordTTL 150 min after the last bind, refresh
//	                                 acked, floor, lost, history, cut,        or append, and never less than its list
//	                                 cut_to, older_cut, older_cut_to, older_lost,
//	                                 instance, attempt, until, first, secret
//	mq_c_{client}            LIST    <id>:<json>, oldest at the head          ack, ClientCap 1000, ClientTTL 1 h or what a push asks for
//	mq_kc_{client}:<key>     STRING  as mq_k_                                 KeyTTL 10 min
//	mq_f_{client}            ZSET    group, score id; <id> where withdrawn    ack, 2 × ClientCap, TTL of the record
//	qq_{N}                   LIST    client requests, oldest at the head      RequestCap 10,000 and RequestBytes 8 MiB, of one sender
//	                                                                          RequestShare 100 and RequestShareBytes 1 MiB, then
//	                                                                          ErrFull; RequestTTL 1 h after the last push
//	qq_o_{N}                 LIST    <bytes> <sender> of each of qq_{N}        as qq_{N}
//	qq_s_{N}                 HASH    bytes; n <sender>, b <sender>             as qq_{N}
//
// Messages, positions and records live as long as said at least, and up to an eighth longer: until is when they expire
// at the earliest, and an append renews them only when that is nearer than it should be. A record that is refreshed
// lives twice as long, so that most refreshes need only look.
//
// When messages and position of a channel are gone it is as if it never was: Prev is 0, and a page
// behind any id is not Complete. Ids go on growing, since they follow the clock, which has moved on
// by MetaTTL at least; a clock that was set back by more than that could repeat them, and the
// horizon of the callers, see below, prevents that, too.
//
// Read here, written by package registry: ch_{channel}, the servers with subscribers, and u_{user}, the clients of a user.
// Further limits: a page holds about MaxPageBytes (at least one message), a window covers
// the first MaxWindow messages of a client's list.
//
// # Ids
//
// The id of a message is its place in its queue: max(ms since 2020-01-01 UTC × 4096,
// last + 1) on the store's clock. It grows strictly within a queue, 4096 of them fit in a
// millisecond before they run ahead of the clock, it tells the message's age, and it is
// exact in a double (2^53) until 2089. Generations of clients follow the same rule. Callers of
// Redis bring along what its clock showed, so that one which takes over with a clock that is behind goes on from there.
//
// The floor is the highest id that is gone without having been received; what is held is
// above it. It moves when a cap or the janitor drops messages. When a whole queue expired
// nothing runs at that moment, so whoever looks next finds no messages although ids were
// given out, and takes the last of them as the floor.
//
// # The first acknowledgement
//
// A message that goes to all clients of a user may be of a group, of which only the first acknowledgement counts
// (ClientPush.AckGroup). It is stored with its group, in one script: in mq_f_{client} the group has the message's id, and
// the record's first is the lowest of those ids. So an acknowledgement of others costs nothing more, and one behind
// first looks for the groups whose messages the client has received, has them taken out of the lists of the user's other
// clients, in their slots, and then forgets the groups. (What the cap dropped or what expired here it has not received: such
// groups go without effect.) Whoever is killed in between leaves all of them to the client's next
// acknowledgement or bind. What was withdrawn is no gap: the floor stays, and when a list is emptied by it, the record's acked
// becomes last. Its id stays in mq_f_{client} until the client acknowledges a later one, so that ConfirmClient does
// not take it for lost.
//
// # Durable pushes
//
// A durable push returns when a replica has the message (WAIT 1 behind the script, on its
// connection). When none has in time, and where there is none, the message is stored all
// the same and ErrNotReplicated comes with it. The same push with the same key waits once more: the
// script writes the key again, so that there is something to wait for.
//
// # Losses
//
// Redis replicates asynchronously: a failover, or a restart without a file, may lose what was
// acknowledged. Whoever was told that a message is stored asks again afterwards (ConfirmChannel,
// ConfirmClient). Where the store no longer knows it, a marker is appended: <id>:!<after>-<to>, an entry like
// a message, which says that those with ids above after and up to to are lost. It reaches
// every reader in its turn, those who come later too, as long as messages are held.
//
// # Other writers
//
// A backend may write to Redis itself: ZADD mq_ch_{channel} <id> <id>:<json> or RPUSH
// mq_c_{client} <id>:<json>, with ids above all that are there, and then notify. Members
// that are no such thing are passed over in a channel, until a cap or the janitor takes
// them, and removed from a client's list as soon as a window meets them.
package queue
