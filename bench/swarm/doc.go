// Package swarm runs very many subscribers on one goroutine: an epoll loop over plain descriptors
// that opens connections to a server, subscribes each to one channel, and checks every delivery. A
// [Dialect] implements the protocol of a server. The package needs little CPU and memory, because
// it shares the machine with the measured server: all reads use one buffer, a delivery is compared
// in place, and a connection takes 56 bytes.
//
// Nothing runs in the background. [Swarm.Open], [Swarm.Until] and [Swarm.Idle] run the loop until
// their condition is met.
//
// The first connection that receives a new message appends its id to the channel's list. All other
// connections must then receive the same id at the same position. At the end [Swarm.Verify]
// compares the list with the ids of all pushed messages: the ids in the answers to the pushes, or
// the numbers in the payloads. This detects every message that is lost, repeated, changed or out of
// order on any connection, with one counter per connection.
//
// # Files
//
// Files in reading order: socketio.go, cursors.go, centrifugemap.go, centrifuge.go, conn.go,
// dial.go, eventstream.go, switchboard.go, mqtt.go, nchan.go, dialect.go, handshake.go,
// swarm.go, checker.go, scan.go, payload.go.
package swarm
