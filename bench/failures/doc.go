// Command failures counts the commands that Redis executes after a broker is killed, starts or
// ends, while thousands of idle clients are connected to another broker. Commands inside scripts
// count.
//
//	go run ./bench/failures --out bench/failures      writes REPORT.md, report.json and plots
//	go run ./bench/failures --clients 1000            prints a quicker run
//	go run ./bench/failures --only idle               counts only what idle brokers cost
//
// With --only and --out, the other results in report.json stay. The kinds of cases:
//
//   - ends: each case has a Redis, and a broker that holds all clients. Each client is a user and
//     subscribes to a channel of its own. In the variant "watching", the channel has a state, and
//     the client watches the state, the roster of the channel and another user. Another broker,
//     without clients, is killed; it is then removed from the list of servers, as a janitor does. A
//     third one starts and ends after SIGTERM. A fourth one is killed after it has stored half of
//     2,000 pushes a second. In the last step Redis is stopped for 5 s.
//   - failover: a master fails over, under Sentinel and in a Cluster of three masters, with the
//     same clients and one broker. In the Cluster it is a master without the broker's own lists,
//     and in a second case the one that has them. In a third case, a second master of the Cluster
//     fails while the broker still binds after the failover of the first.
//   - restarts: 200 brokers in this process, with links and clients in memory. Some of them
//     restart, one after the other.
//   - hints: a proxy between two brokers drops all bytes for 10 s.
//   - pushes: how long pushes take during the kill of a broker without clients, and to the healthy
//     masters of a Cluster while one hangs or is dead.
//   - idle: many idle brokers, in this process and without links; without the kit, and with all of
//     it.
//   - centrifuge: the start, the end and the kill of a node of the centrifuge library with its
//     Redis, and idle nodes.
//
// No janitor runs: its rounds cost the same whether or not a broker ends.
//
// # Files
//
// Files in reading order: main.go, centrifuge.go, report.go, restarts.go, pushes.go, comparison.go,
// failover.go, fleet.go, hints.go, idle.go, case.go, kit.go, clients.go, redis.go, network.go.
package main
