// Command suite measures this project's broker beside its peers and the floor program, in one run on
// one machine, round after round over all of them, and writes the report.
//
//	go run ./bench/suite                    some 30 minutes; writes bench/REPORT.md, bench/report.json, bench/plots
//	go run ./bench/suite --quick            under five; prints the table
//	go run ./bench/suite --only 'herd|idle' only these scenarios
//
// The scenarios are a table in scenarios.go. Each measurement starts the server anew, with a Redis of its own where it uses
// one, connects the subscribers (bench/swarm), pushes, and stops it. CPU is user and system time of the server's
// processes, and is the figure to compare: throughput suffers from the load generator's share of the same cores.
//
// "switchboard memory" is one broker without Redis, which keeps everything in its own memory, as
// nchan and mosquitto do. It takes part in every scenario but the one of several brokers.
// "centrifuge" keeps a history in Redis, from which a client recovers, and "centrifuge memory" in
// its own memory. The report sets each system against the row of this project that keeps its
// messages in the same kind of place.
//
// The peers are nchan and mosquitto from the distribution, and two small servers in bench/peers: one on the centrifuge library,
// a Go module of its own, and one on socket.io. What is missing of them is installed, where that is possible (Debian packages
// as root, npm, the Go module proxy), and named; a peer that cannot be had is told in the report, and the rest goes on. How each is
// configured stands beside it in bench/system, in its method Notes, and in the report.
//
// Every delivery is checked. A measurement with a message lost, repeated, changed or out of order does not count, and the
// report names it.
//
// The processors may be those of a host that runs others on them, too. What it takes (steal in /proc/stat) stands in the
// report, round by round.
//
// How is pushed: "one at a time", the next when everybody has the last; "closed loop", each
// publisher when its last was answered (and, the same bound for all, no further ahead of the
// subscribers than the scenario's window); "open loop", at fixed moments, whatever the server does:
// a latency counts from the moment at which a message was to be sent. There are two of those: half
// of what centrifuge can take, and a moderate load of 2,000 pushes per second.
package main
