// Package kit has what the packages under it share: requests, conditions on versions, and the parts
// of lists, checks and rounds that are the same for all documents.
//
// # Documents
//
// A document is a room, a resource of holds, a board, an account, an avatar or a scene. It is the
// state of one channel, and the rest of the channel's name is its id. A card of it is in an
// [index.Index].
//
//   - A call or a method is bound to its request by a [Binder], see [Call].
//   - An operation reads, decides, and writes one update whose conditions the store checks. [Retry]
//     repeats it if what it has read has changed.
//   - Before a change, the id is on the due list of the index. So another broker computes the card
//     if the process ends, see [Rounds] and [Cards].
//   - A failover may lose cards and due lists. A janitor finds such documents by their channels,
//     see [Restore].
//   - A [Check] reads documents by their channels, and then the cards without one, see [EachBatch]
//     and [EachUnknown].
//   - A list has pages with a cursor, see [ReadPage] and [PageLimit].
//
// All of this is in [Documents] for accounts, avatars and scenes, whose cards show one field. The
// cards of the others depend on more, and on the time, so that they use the parts.
//
// documents_test.go has the rules that hold for all of them.
//
// # What differs
//
// These differences are meant:
//
//	kind              differs                              because
//	accounts,         are due after a change only;         the card shows the record and nothing else
//	avatars, scenes   their cards are put at once
//	rooms, holds,     are always due; the version of a     leases, seasons and servers end without a
//	boards            card is the time or the last id      change of the document
//	rooms             cards wait 0.1 s for more changes    a room that fills has one card, not one
//	                                                       for each player
//	rooms             show lobbies, and end by themselves  clients see open rooms without a call
//	holds             a deleted one is gone at once        the seats must be free for the next one
//	accounts,         a deleted one is marked, ends later  it can be restored
//	avatars, scenes
//	boards            have scores in keys of their own,    a rank needs an ordered set; one script
//	                  no version, and no retry             decides, so nothing changes in between
//	accounts          a login does not change the version  a login is no edit
//	accounts          refuse records of a newer format     an older broker must not write a password
//	                                                       that it does not understand
//	rooms, holds      have no format in the document       clients read it
//	holds, boards,    wait for a replica if asked to       they are about money, scores and passwords
//	accounts
package kit
