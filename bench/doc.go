// Command bench measures one broker on this machine: the memory of an idle connection, and the CPU
// time of a connect, a delivery and a push.
//
//	go run ./bench                                    10,000 raw TCP connections on one channel
//	go run ./bench --transport ws --redis redis://127.0.0.1:6379
//
// How to read the result:
//
//   - CPU is the user and system time of the broker's process. Compare this figure.
//     Throughput also depends on the load generator, which uses the same cores.
//   - Memory is the growth of the broker's resident set over the broker without connections, after
//     it has stopped changing. It does not include the kernel's socket memory.
//   - Messages are pushed in two phases. In "one at a time" a push starts after all subscribers
//     have received the one before, so each delivery is a separate write. In "closed loop" each
//     publisher waits only for its answer, so the broker may coalesce several messages into one
//     write.
//   - The floor is a process that only calls write(2), with the same bytes and as many sockets, one
//     message at a time. It is measured in the same run.
//
// A run counts if every connection received every message exactly once, in the order of ids, with
// the payload that was pushed. Otherwise bench prints the faults and exits with 1.
package main
