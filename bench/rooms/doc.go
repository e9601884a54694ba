// Command rooms measures rooms of this project's broker (kit/room) beside rooms of Colyseus, and
// holds (kit/hold), in one run on one machine.
//
//	go run ./bench/rooms                    two rounds, under six minutes
//	go run ./bench/rooms --quick            one small round, some 40 s
//	go run ./bench/rooms --out bench/rooms/REPORT.md
//
// The load generator is this program. It uses blocking sockets, one goroutine for each connection,
// and the same code for all servers except for the protocols. Each trial starts the server anew.
// The servers and the generator share the cores.
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
// change of each member of its room, once and in order, or the run fails.
//
// The changes a second count changes, not deliveries. The CPU is that of the server and its Redis,
// divided by the deliveries.
//
// The memory of a room is the growth of the resident memory by some hundred rooms, after some rooms
// that are not counted. It contains the connections of the members and their buffers in the
// process, but not the sockets in the kernel. "In Redis" is the growth of used_memory.
//
// A hold is one unit for one user with an id of its own. All holds of a run stay. The one resource
// has a place for all of them; they change the same channel, so attempts that lost a race are
// repeated and count in the CPU.
//
// # Files
//
// Files in reading order: main.go, report.go, contenders.go, holds.go, switchboard.go,
// colyseus.go, member.go, socket.go, meter.go, phases.go, machine.go, room.go.
package main
