// Package room keeps rooms: a document, members with numbers, and fields that they share. A room is
// the state of the channel room:{id}, so clients follow it by a subscription. Nothing is counted or
// compensated: each operation reads the room, decides, and writes one update whose conditions the
// store checks. If the room has changed in between, the operation begins again.
//
// # Fields
//
//	$room            the document, see Room; its id is the version
//	member/{n}       {"nickname","joined"}; owned by the user's clients, or leased while reserved
//	p/{n}/*          the player's own fields, parts of member/{n}
//	g/*              shared fields, under the rules of the mode
//	$$user/{user}    the number of a user (escaped), part of member/{n}
//	$$n/{n}          the user of a number, part of member/{n}
//	$$owner          the user that is named as the owner
//	$$code           the code of a private room
//	$$next           the last number
//
// # Limits
//
//	capacity         fields in the group member/, by the store
//	32               fields p/{n}/* of a member
//	8                attempts of an operation
package room
