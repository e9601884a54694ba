// Package peer is what the instances of a broker say to each other: hints, which may be
// lost, and calls, which are answered.
//
// # Hints
//
// For every ordered pair of servers the sender keeps one WebSocket to the receiver,
// GET /peer/link?from=<own id>&to=<receiver's id>. The id of the receiver keeps a server
// that was started again at an old address from being taken for its predecessor.
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
// POST /peer/call/{name}?to=<receiver's id>, JSON in and out, over connections that are kept.
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
//	call                    5 s; 1 MiB each way
package peer
