// Package peer is what the instances of a broker say to each other: hints, which may be
// lost, and calls, which are answered.
//
// For every ordered pair of servers the sender keeps one WebSocket to the receiver,
// GET /peer/link?from=<own id>&to=<receiver's id>. The id of the receiver keeps a server
// that was started again at an old address from being taken for its predecessor. Binary messages
// are hints, text messages are calls and their answers.
//
// # Handshake
//
// The two ends prove to each other that they know the secret of the instances, which is never sent:
//
//	request       Switchboard-Peer: 2 <dialer's nonce>
//	response 101  Switchboard-Peer: 2 <listener's nonce> <listener's proof>
//	first message <dialer's proof>, 32 bytes; batches and calls follow
//
// Nonces (32 random bytes) and proofs are in hex in the headers. A proof is the HMAC-SHA256, with
// the secret as key, of six parts, each after its length (4 bytes, big-endian): "switchboard peer
// link 2", the role ("dialer" or "listener"), the dialer's id, the listener's id, the dialer's
// nonce, the listener's nonce. So a proof is good for one link only, and neither end's is good as
// the other's. The dialer checks the listener's proof before it sends its own. What listens at an
// address that the registry gives for another server therefore gets a nonce and two ids, and no
// proof. It costs no round trip.
//
// Without a secret the header is the version alone, and nothing is proven. A server with a secret
// has no link to one without. A dialer that shows the secret itself, as version 1 did, is refused.
//
// The handshake does not protect what follows: a network in between can read and change that,
// unless the links use TLS. Anything that connects gets a proof by the listener, from which a weak
// secret can be guessed: hence its length.
//
// # Hints
//
// A hint carries no promise, but its loss is noticed. Each message of the link, a batch,
// begins with the number of hints that were ever addressed to this receiver before it: those
// dropped while there was no link, or while the queue was full, are counted too. A receiver
// that counted otherwise has missed some, and [Links.Lost] says so. A sender that has nothing
// to say repeats its number: four times a second for 5 s after the last hint, and also when it dropped one, and
// every 2 s at rest. One that is silent, or has no link at all, may be losing hints unseen, and counts as losing
// them. So while all is well nobody needs to look whether a message was stored without a hint, and otherwise it is known
// within a second and a half that somebody must.
//
// Behind a rest it may be 5.5 s, if the first hint is lost on the way: on a network that swallows what is written without
// an error, or with a sender that is stopped between storing a message and sending its hint. That is the price of links
// that cost little: n instances have n² of them, and 55 that beat four times a second took most of a core. A hint
// that the sender drops itself is told as fast as ever.
//
// The number in the first batch of a link is not compared with anything: what was dropped
// before it, nobody can tell. It counts as a loss, and so does the end of a link.
//
//	batch = number hint*         number: uvarint
//	hint  = kind name id step data
//	                      kind: a byte, not 0; name, data: uvarint length and bytes, no data
//	                      is none; id, step: zigzag varint, step = ID - Prev
//
// A kind that the receiver does not know is counted and handed on like the others, so
// that versions can be mixed.
//
// # Calls
//
//	call   = {"id":1,"call":"count","body":…}
//	answer = {"id":1,"answer":…} or {"id":1,"error":"…"}
//
// A call that finds its link down has it dialled at once, and fails if that fails.
//
// # Limits
//
//	name of a hint          1 KiB; a hint with a longer one is a miss
//	data of a hint          64 KiB; longer data is left out
//	batch                   about 64 KiB written, at most 1 MiB read
//	hints queued per link   16,384 and 8 MiB, and as many being written
//	heartbeat               250 ms for 5 s after a hint, then 2 s
//	link is deaf after      1 s without a batch, at rest 5 s; it is hung up on after 10 s
//	one write, one dial     5 s
//	wait between dials      100 ms to 2 s, each between half and the whole of it
//	inbound links           4,096
//	call                    5 s; 1 MiB each way; 256 that wait for answers on a link
//	handshake               5 s; 64 at once, then the oldest gives way
package peer
