// Package sim holds only tests: a deterministic model check of the broker's core. Several simulated
// brokers, each made of the real hub, sessions, loops, pool and pusher, share the in-memory registry
// and queue; a real janitor cleans up behind them; clients, links and the membership loop are played.
//
// # Method
//
// A run lives in a bubble of testing/synctest and is drawn from one seed. Every call of a store parks
// its goroutine; a hint waits in a list; a loop's turn, a worker's start and every move of a client wait
// to be chosen. When nothing can go on by itself the driver draws one of them: execute a parked call,
// deliver its answer (two steps, and "append" and "read the owners" are two as well), lose the answer,
// run a loop, deliver, repeat or drop a hint, let a client say something, leave or stop reading, push, let
// time pass, crash a broker or have it buried alive. Then it waits until all is quiet again. Between two
// steps one goroutine of the brokers runs at most, apart from those that cannot meet, so a seed gives one
// run: choices go by names, never by the order of arrival or of a map.
//
// After every step the model is compared with the stores and with what the clients were sent: no id
// skipped or repeated on a connection, no gap that nothing is missing in, nothing out of a list that was not
// acknowledged (by the client, or by another of the user, where the push said that one is enough), no change by a stale
// generation. In the end everything is healed and flows, and the
// model asks for completeness; then all leave, and nothing may remain.
//
// Seeds have one of four characters, see [profile]: in calm ones nothing fails and nothing may need a sweep
// or a tick to arrive; then hints get lost, then calls fail, then brokers die.
//
// # Assumptions
//
// A call whose caller gave up was executed by then, or never is. The stores are those of package queue
// and registry in memory, which the same conformance suites hold to the contract of the Redis ones.
// The membership loop is played by node.beat, which follows broker/membership.go.
//
// # Use
//
//	go test ./broker/sim                                     all seeds
//	go test ./broker/sim -run TestSimulation -seed=17 -v     one of them, with its trace
//	go test ./broker/sim -run TestSimulation -seeds=5000     a longer search
package sim
