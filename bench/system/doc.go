// Package system runs the servers that the benchmark suite measures: this project's broker, the
// peers and the floor program. All are started, configured and stopped through one interface.
//
// # Files
//
// Files in reading order: socketio.go, centrifuge.go, colyseus.go, mosquitto.go, nchan.go, node.go,
// storefloor.go, state.go, external.go, peer.go, floor.go, switchboard.go, httpconn.go, users.go,
// system.go, writer.go.
package system
