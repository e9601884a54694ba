// Package index keeps the lists of the kit: which rooms, accounts or scenes there are, by which
// attribute, in which order. A list is a projection. The truth is the state of a channel, and each
// [Card] carries the id of that state as its version, so that a late write never replaces a newer
// one.
//
// An index also has a due list: the ids whose card must be computed again at some time. Each due id
// is handed to one caller at a time, and again after the lease of a caller that does not finish.
// A change of a channel puts its id on the due list first. So the lists agree with the channels
// some seconds after the last change, even if the process that made it has died.
//
// # Keys
//
// All keys of an index are in one slot of a Redis Cluster.
//
//	ix_{NAME}         HASH  id -> card
//	ix_l_{NAME}:LIST  ZSET  ids by score
//	ix_d_{NAME}       ZSET  ids by the time at which they are due, Unix ms
//	ix_t_{NAME}       ZSET  removed ids by the time of the removal, Unix ms
//	ix_p_{NAME}       HASH  taker -> list and id of the reserved place, see Search
//	ix_pe_{NAME}      ZSET  takers by the end of the reservation, Unix ms
//	ix_pn_{NAME}      HASH  id -> number of reservations; and the places of documents in ix_pm_
//	ix_pm_{NAME}:LIST ZSET  ids of documents that are being made, by time, Unix ms
//
// The last four end an hour after the last search.
package index
