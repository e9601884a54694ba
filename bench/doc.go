// Command bench measures one broker on this machine: what an idle connection costs in
// memory, and what connecting, a delivery and a push cost in CPU.
//
//	go run ./bench                                    10,000 raw TCP connections on one channel
//	go run ./bench --transport ws --redis redis://127.0.0.1:6379
//
// How to read it:
//
//   - CPU is user and system time of the broker's process, from /proc; it is the figure to
//     compare. Throughput suffers from the load generator's share of the same cores.
//   - Memory is growth of the broker's resident set, once it has stopped changing, over
//     the broker with nobody connected. The kernel's socket memory is not in it.
//   - Pushes go out twice. "one at a time": the next round when the last has reached everybody, so
//     each delivery is a write of its own. "closed loop": each publisher waits only for its answer, so
//     the broker may put several messages into one write, and CPU per delivery falls.
//   - The floor is a process that does nothing but write(2) the same bytes to as many sockets,
//     one message at a time, in the same run.
//
// A run counts when every connection received every message exactly once, in the order of ids,
// with the payload that was pushed. Otherwise it says what was wrong and exits with 1.
package main
