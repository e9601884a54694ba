// Package sim holds only tests: a deterministic model check of the broker's core. Several simulated
// brokers share the in-memory registry and queue. Each consists of the real member, hub, sessions,
// presence, loops, pool and pusher. A real janitor cleans up after them. Clients and the
// connections of links are simulated.
//
// # Method
//
// A run is drawn from one seed and runs in a bubble of testing/synctest. The goroutine of the test
// drives the run, so it is called the driver. Every store call parks its goroutine. Hints wait in a
// list. Runs of loops and actions of clients wait until the driver chooses them. Workers start one
// by one. When nothing can continue by itself, the driver draws one of these steps:
//
//   - execute a parked store call. An append is executed in several steps: other steps may come
//     before and after it reads the owners
//   - deliver the answer of an executed call
//   - lose the answer of a store call
//   - run a loop
//   - deliver, repeat or lose a hint
//   - let a client send a request, disconnect or stop reading
//   - push, or erase a message
//   - let time pass
//   - crash a broker, end one as planned, or have a running one declared dead
//
// Then the driver waits until nothing can continue by itself. During this wait, goroutines of the
// brokers that share state never run at the same time. The driver sorts its choices by name and
// never depends on the order of arrival or of a map. So a seed always gives the same run.
//
// After every step the model is compared with the stores and with the events that the clients
// received:
//
//   - no id is skipped or repeated on a connection
//   - every gap covers at least one lost message
//   - a client's list loses only messages that were acknowledged, by the client itself or, if the
//     push asked for it, by another client of the user
//   - a stale generation changes nothing
//   - a bind that its caller abandoned replaces no later binding
//   - after a message is erased, the store has no more of it than its changes of fields; each
//     subscriber receives the report, and one that subscribes at a broker after this broker has
//     reported the erasure does not receive the message
//
// In half of the runs, channels have states: clients and the backend change fields with leases
// of milliseconds, clients own fields, and some subscribers follow the state with [state.Follower].
// The clock of the queue may jump forward. These rules are checked, too:
//
//   - at every id, the fold of a channel's log has the fields of the store
//   - no group of fields has more fields than its limit at any id
//   - pages have the fields of the fold at their id, and no message comes before the last page
//   - a subscriber receives exactly the changes that its filter shows, and in the end it has the
//     fields of the store
//   - in the end, a field is away if and only if none of its owners is subscribed with the state,
//     and it ends after the grace period
//
// Some subscribers watch who is in a channel, also with combined changes:
//
//   - no join or leave repeats what the events before it have said, except after a page
//   - in the end, everything that a watcher knows of the members is true
//
// Some connections watch users. The store may lose, unnoticed, which servers watch a user:
//
//   - no join or leave repeats what the watcher knows, except after it was backed up
//   - a watcher knows at once that a user is bound to a server with a lease
//   - in runs without faults, there is at most one leave for each absence that is longer than the
//     grace period
//   - in the end, after the grace period, what a watcher knows agrees with the bindings
//
// At the end all faults stop, everything is delivered, and the model checks that nothing is
// missing. Then all clients disconnect, and nothing may remain in the stores.
//
// A seed has one of four profiles, see [profile]. In calm runs nothing fails, and everything must
// arrive without a sweep or a tick. In lossy runs hints are lost. In shaky runs store calls fail
// too, and brokers end as planned. In harsh runs brokers also crash, freeze and are declared dead.
//
// # Assumptions
//
// A call that its caller abandoned is executed before the next second passes, or never. Only a bind
// of a running broker may be executed at any later time, or never. The
// stores are the in-memory ones of the packages queue and registry; the conformance suites of
// these packages hold them to the contract of the Redis stores.
//
// # Use
//
//	go test ./broker/sim                                     some seeds
//	go test -tags long ./broker/sim                          all seeds of make test-long
//	go test ./broker/sim -run TestSimulation -seed=17 -v     one of them, with its trace
//	go test ./broker/sim -run TestSimulation -seeds=5000     a longer search
package sim
