// Package peer connects the instances of a broker: they send each other hints, which may be lost,
// and calls, which are answered.
//
// For every ordered pair of servers the sender keeps one WebSocket to the receiver, GET
// /peer/link?from=<own id>&to=<receiver's id>&was=<former own id>, without was if the sender has
// no former id. The receiver's id protects from a link to the wrong server: a server that restarts
// at the same address has another id. Binary messages are batches of hints. Text messages are
// calls and answers.
//
// # Handshake
//
// The two ends prove to each other that they know the secret of the instances, which is never
// sent:
//
//	request       Switchboard-Peer: 2 <dialer's nonce>
//	response 101  Switchboard-Peer: 2 <listener's nonce> <listener's proof>
//	first message <dialer's proof>, 32 bytes; batches and calls follow
//
// Nonces (32 random bytes) and proofs are in hex in the headers. A proof is the HMAC-SHA256, with
// the secret as key, of six parts, each prefixed with its length (4 bytes, big-endian):
// "switchboard peer link 2", the role ("dialer" or "listener"), the dialer's id, the listener's
// id, the dialer's nonce, the listener's nonce. So a proof is valid for one link and one end only.
// The dialer checks the listener's proof before it sends its own. A stranger at the address of a
// server therefore receives a nonce and two ids, but no proof. The handshake needs no extra round
// trip.
//
// Without a secret the header contains only the version, and no proofs are exchanged. A server
// with a secret and a server without one do not link. A dialer that sends the secret itself, as
// version 1 did, is refused.
//
// The handshake does not protect the messages after it: a network can read and change them unless
// the links use TLS. Anything that connects receives a proof of the listener and could try weak
// secrets on it. So a secret has a minimum length.
//
// # Features
//
// Request and response also have the header Switchboard-Peer-Features, a list separated by commas:
//
//	counts    the dialer counts hints from the start of its process, see below
//	goodbye   the dialer announces its end
//
// The dialer lists what it does, and the listener what it understands. A feature is in use if both
// have it. A version from before the header has none, and all versions with the header accept a
// link without it.
//
// # Hints
//
// A hint may be lost, but its receiver detects the loss. Each batch begins with the number of
// hints that the sender addressed to this receiver before it. Dropped hints count: when the queue
// was full, when there was no link, and when the receiver was not yet or no longer on the sender's
// list of servers. [Links.Miss] counts a hint whose receiver or name is not known. If the number is
// not the one that the receiver expects, hints are lost, and [Links.Doubts] returns the sender.
//
// The sender counts from the start of its process, and the receiver expects 0 from a server that
// it hears for the first time. Both numbers outlive the link. So a first link, or a new one, is no
// loss if the numbers agree. They belong to the pair of ids: a receiver with a new id begins with
// 0. A sender with a new id goes on with its numbers, and names its former id in the request of
// the link, as was. A sender without the feature counts forgets hints from before its first link,
// so the first batch of each link counts as a loss there.
//
// A sender without hints sends empty batches as heartbeats. A link is active for 5 s after a hint,
// also a dropped one, and idle after that. Heartbeats go out four times a second on an active link
// and every 2 s on an idle one. The end of a link without a goodbye counts as a loss, unless the
// next link agrees before Doubts is called. So does the silence of a live server, each second. A
// new live server has a second for its first batch.
//
// So Doubts reports a loss within 1.5 s. As long as it reports none, a broker does not need to
// read the store: no hint to it is lost. There are two exceptions:
//
//   - On an idle link, Doubts may take up to 5.5 s to report a hint that is lost in transit. That
//     happens in a network that drops data without an error, or if the sender stops between storing
//     a message and sending its hint. A hint that the sender drops is reported within 1.5 s there
//     too. Idle links beat slowly because n instances have n² links: 55 links that beat four times
//     a second took most of a core.
//   - If the address of a silent server refuses connections, or another server answers there, its
//     process does not run any more. It stores nothing but what was under way. Doubts returns it at
//     once, and then after pauses of 1, 2 and 4 s, until its lease ends. If it renews its lease
//     meanwhile, it does run, and Doubts returns it each second.
//
// A server without a lease may still store messages. It is doubted for the last time when the
// registry no longer lists it, see [Links.Unlisted], or a minute after its lease and its link have
// ended. Until then its numbers are kept.
//
// At its planned end a server sends what is queued, and then a goodbye with its last batch, see
// [Links.Goodbye]. After a goodbye the end of the link, the silence and the end of the server are
// no loss. The receiver ends the link after a goodbye. A later link of the server is compared as
// any other.
//
//	batch  = number hint* ending?   number: uvarint
//	hint   = kind name id step data
//	kind   = a byte, not 0
//	name   = uvarint length and bytes
//	id     = zigzag varint: ID
//	step   = zigzag varint: ID - Prev
//	data   = uvarint length and bytes; length 0 if the hint has no data
//	ending = 0 flags                on links with features only
//	flags  = a byte: 1 for a goodbye
//
// A hint of an unknown kind is counted and handled like the others, so that servers of different
// versions work with each other.
//
// # Calls
//
//	call   = {"id":1,"call":"count","body":…}
//	answer = {"id":1,"answer":…} or {"id":1,"error":"…"}
//
// A call on a link that is down dials at once, and fails if the dial fails.
//
// # Limits
//
//	name of a hint          1 KiB; a hint with a longer name is dropped
//	data of a hint          64 KiB; a hint with longer data is sent without data
//	batch                   about 64 KiB written, at most 1 MiB read
//	hints queued per link   16,384 and 8 MiB; up to as many again are being written
//	heartbeat               250 ms for 5 s after a hint, then 2 s
//	link counts as lossy    after 1 s without a batch if active, 5 s if idle
//	silent link is closed   after 10 s
//	one write, one dial     5 s
//	delay between dials     100 ms to 2 s, with a jitter of half of it
//	goodbye                 1 s until the receiver ends the link
//	counts of hints         1,024 servers that are not on the list; those that left it first go
//	numbers of senders      8,192 servers or all live ones; a minute after lease and link
//	inbound links           4,096
//	call                    5 s; 1 MiB each way; 256 unanswered calls on a link
//	handshake               5 s; 64 at once; another one ends the oldest
//
// # Files
//
// Files in reading order: sender.go, caller.go, accept.go, callee.go, call.go, carried.go,
// goodbye.go, handshake.go, link.go, links.go, inbound.go, outboxes.go, outbox.go, hint.go,
// features.go.
package peer
