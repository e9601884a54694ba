// Command faults writes the fault ledger: it breaks things on purpose while messages flow, and
// reports what happened to the messages and to presence.
//
//	go run ./internal/faults                 all scenarios; writes docs/faults.md and ledger.json
//	go run ./internal/faults --only 'Sentinel' --short
//
// A scenario starts a Redis, brokers and a janitor as processes. It connects some hundred clients,
// three devices of each user, and pushes over plain HTTP. Then it injects and removes the fault,
// ends the load, waits for outstanding messages and disconnects all clients. Three quarters of the
// clients use package client. The others use Server-Sent Events, and resume with the id of the last
// event.
//
// A row is RED, and the exit code 1, if an acknowledged message was lost, duplicated or delivered
// out of order, if a client that is gone is reported online, if a presence event repeats a known
// state, or if presence is wrong in the end. Where Redis itself loses its last writes, losses are
// counted, but a gap must have declared them to the client. Durable pushes must not be lost even
// there.
//
// The program keeps its own accounts. Publishers record each first attempt and each
// acknowledgement, callbacks of the clients record arrivals and gaps, and in the end the two are
// compared. A push without an answer, or with a refusal, is repeated with the same key at the next
// broker, as a good backend does.
//
// At each broker a watcher receives the joins and leaves of all channels, over a socket and without
// package client. In the end its view and each broker's answers are compared with the connected
// clients. The last part is a series of kills. It measures how long the clients of a killed broker
// are reported present.
//
// --seed determines all choices: victims, moments, and which connections are cut. It does not
// determine the random choices of the programs under test: which broker a client tries first, and
// retry jitter.
//
//	scenarios.go       the table of scenarios
//	faults.go          what each fault does
//	run.go             the course of a scenario
//	testbed.go         the processes and clients of a scenario; its parts are store.go, instance.go,
//	                   testclient.go, eventstream.go, serverlink.go, clientlink.go
//	workload.go        the clients and the streams of messages
//	publisher.go       the backend; push.go: one call of it
//	journal.go         acknowledgements and arrivals
//	verdict.go         compares the two; losses.go explains losses
//	ghosts.go          clients that die with their broker; leftovers.go: state after all have left
//	watcher.go         a presence watcher; presencejournal.go: the events that it received
//	watchers.go        the watchers of a scenario; presencecheck.go checks what they report
//	kills.go           the series of kills; killreport.go: its result
//	row.go             when a row is red
//	ledger.go          the files that are written
package main
