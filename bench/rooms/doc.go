// Package rooms plays in the rooms of this project's broker (kit/room) and of Colyseus. It uses
// blocking sockets, one goroutine for each connection, and the same code for both servers except
// for the protocols.
//
// A join is one player: it connects, gets a place in a room, and has the state of the room. The
// first player of a room creates it. 16 rooms are filled at the same time, the members of one room
// one after the other. A player of Colyseus asks the matchmaker over a connection of its own and
// then opens the WebSocket, as the client library does. A player of the broker opens a WebSocket
// and sends connect, room.create or room.join, and subscribe at once.
//
// A change is a new position {x, y} of a player: the field p/{n}/pos of the broker, and two int32
// fields of the player in Colyseus. All members of the room receive it, also the one that made it.
// Each member changes its position again as soon as its last change has come back, so all members
// of a room change it at the same time. Every delivery is checked: each member receives every
// change of each member of its room, once and in order.
//
// # Files
//
// Files in reading order: room.go, switchboard.go, colyseus.go, member.go, socket.go.
package rooms
