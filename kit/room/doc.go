// Package room keeps rooms: a document, members with numbers, and fields that they share. A room
// is the state of the channel room:{id}, so clients follow it by a subscription. Nothing is
// counted or compensated: each operation reads the room, decides, and writes one update whose
// conditions the store checks. If the room has changed in between, the operation begins again.
//
// # Fields
//
//	$room            the document, see Room; its id is the version
//	member/{n}       {"nickname","joined"}; owned by the user's clients, or leased while reserved
//	p/{n}/*          the player's own fields, parts of member/{n}
//	g/*              shared fields, under the rules of the mode
//	$$user/{user}    the number of a player (escaped), part of member/{n}
//	$$reserved/{user}  the number of a user with a reservation, part of member/{n}
//	$$n/{n}          the user of a number, part of member/{n}
//	$$kicked/{n}     the user of a number that was kicked, for a minute
//	$$barred/{user}  the number of a user that was kicked and may not join yet
//	$$owner          the user that is named as the owner
//	$$code           the code of a private room
//	$$next           the last number
//	$$taken          the number of the last reserved place that its user has taken
//	$$ended          the event room_ended of an earlier room, until it is stored; see Ended
//
// # Limits
//
//	capacity         fields in the group member/, by the store
//	32               fields p/{n}/* of a member
//	8                attempts of an operation, see kit.Retry
//	1,000            rooms of a lobby; cards that a page of a list looks at
//
// # Lists
//
// A [Card] is computed from the channel and kept in an index, with the lists that the room is in:
// by attributes, of users, of lobbies. The lobby:{mode} and lobby:{mode}:{region} channels show
// the newest cards that can be joined. All of these are projections: an operation notes the room
// on the due list of the index and changes the channel. Within 0.1 s, [Rooms.Settle] computes the
// cards of all rooms that have changed. [Rooms.Round], on any broker, does so for rooms that are
// due: after a process has died, when a place ends, and every 5 s to 60 s, since a server that dies
// leaves members away without an operation. It reads rooms in full only if something has happened.
// The round also ends rooms. [Check] computes everything again and compares.
//
// # Files
//
// Files in reading order: endpoints.go, rooms.go, rounds.go, check.go, lobby.go, create.go,
// ended.go, leave.go, join.go, quick.go, list.go, patch.go, partial.go, pending.go,
// card.go, snapshot.go, member.go, options.go.
package room
