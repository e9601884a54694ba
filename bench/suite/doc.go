// Command suite measures this project's broker, other servers (the peers) and the floor program, in
// one run on one machine, and writes the report. It repeats all measurements in several rounds.
//
//	go run ./bench/suite                    some 45 minutes; writes the report into bench
//	go run ./bench/suite --quick            under five minutes; prints the table
//	go run ./bench/suite --only 'herd|idle' only these scenarios
//	go run ./bench/suite --only load --system 'floor|memory' --connections 5000
//	go run ./bench/suite --only load --url-http 127.0.0.1:8080 --url-tcp 127.0.0.1:8081 --pid 4711
//
// The scenarios are a table in scenarios.go. Each measurement starts the server anew, with its own
// Redis if it uses one, connects the subscribers (bench/swarm), pushes, and stops the server. CPU
// is the user and system time of the server's processes. Compare this figure: throughput also
// depends on the load generator, which uses the same cores.
//
// "switchboard memory" is one broker without Redis, which keeps everything in its own memory, as
// nchan and mosquitto do. It is measured in every scenario that needs only one process.
// "centrifuge" keeps the history for recovery in Redis, "centrifuge memory" in its own memory. The
// report compares each system with the system of this project that has the same kind of store,
// memory or Redis.
//
// Systems with "state" or "map" in their names change fields of channels and do not send messages:
// channel state in this project, map subscriptions in centrifuge. Their channels have 64 fields
// before the measurement, and publishers change one of them. The payload is the same as that of a
// message, so the two can be compared in one round. "floor redis" writes the fields to Redis
// without a server. In the scenario "cursors" the subscribers themselves send values.
//
// The scenarios "load" and "load-loop" are not part of the report. They measure one broker, in
// memory or with Redis and over each transport, or a running one ("switchboard external"): the CPU
// and the memory of a connection, and the CPU of a push and of a delivery. Memory is the growth of
// the broker's resident set after it has stopped changing. It does not include the kernel's socket
// memory.
//
// The scenarios "rooms-4", "rooms-50", "rooms-empty" and "holds" are not part of the report either.
// They measure rooms of this project's broker (kit/room) beside those of Colyseus, and holds
// (kit/hold); package rooms has the players. Their report is written by
//
//	go run ./bench/suite --only 'rooms|holds' --rounds 2 --out bench/rooms
//
// The changes a second count changes, not deliveries. The memory of a room is the growth of the
// resident memory by some hundred rooms, after some rooms that are not counted. It contains the
// connections of the members and their buffers in the process. A hold is one unit for one user with
// an id of its own. All holds of a measurement stay. The holds of one resource change the same
// channel, so attempts that lost a race are repeated and count in the CPU.
//
// The peers are nchan and mosquitto from the distribution, and two small servers in bench/peers:
// one on the centrifuge library, in a separate Go module, and one on socket.io. Missing programs
// are installed if possible (Debian packages as root, npm, the Go module proxy). If a peer is not
// available, the report says so and the other systems are measured. The method Notes of each system
// in bench/system describes its configuration, which is also part of the report.
//
// Every delivery is checked. A measurement with a lost, repeated, changed or reordered message does
// not count, and the report names it.
//
// If the machine is virtual, its host may give processor time to other virtual machines. The report
// contains the share of this time (steal in /proc/stat) for each round.
//
// Messages are pushed in three ways. "One at a time": the next push starts after all subscribers
// have received the last. "Closed loop": each publisher pushes again after its last push was
// answered, with at most the scenario's window of messages in flight, which is the same for all
// systems. "Open loop": pushes are due at fixed moments, independent of the server, and a latency
// counts from the moment when the message was due. There are two open loops: one at half the rate
// that centrifuge can sustain, and one at a moderate load of 2,000 pushes per second.
//
// # Files
//
// Files in reading order: main.go, options.go, suite.go, scenarios.go, load.go, latency.go,
// state.go, rooms.go, cursors.go, herd.go, webhooks.go, idle.go, measure.go, trial.go, loop.go,
// publish.go, contenders.go, machine.go, redis.go.
package main
