// Command faults makes the fault ledger: it breaks things on purpose while messages flow,
// and publishes what happened to them.
//
//	go run ./internal/faults                      all scenarios; writes docs/faults.md and ledger.json
//	go run ./internal/faults --only 'Sentinel' --short
//
// A scenario starts a Redis, brokers and a janitor as processes, connects some hundred clients
// through package client, three devices of each user, and pushes over plain HTTP all the
// while. Then the fault comes and goes, the load ends, what is on its way arrives, all leave.
// A row is RED, and the exit code 1, where an acknowledged message was lost, came twice, out of order,
// or anybody is taken for connected who is not; where presence was told twice, or is not true in the end. Where Redis itself loses its last writes by its nature,
// losses are counted but must have been told to the client as a gap; durable pushes are not lost even there.
//
// The accounts are the program's own. Publishers enter what was acknowledged and when it was tried
// first, callbacks of the clients enter what arrived and which gaps were told, and in the end the
// two are compared. A push that is not answered, or refused, is made again with the same
// key at the next broker, as a good backend does.
//
// At each broker a watcher follows who comes and goes in all channels, over a socket and without the library. In the end
// what it was told, and what each broker answers, is compared with who was there. Last comes a series of kills, which
// measures how long the clients of a broker that was killed are taken for present.
//
// All choices follow from --seed: victims, moments, which connections are cut. What the programs under test
// draw for themselves (which broker a client tries first, the spread of retries) does not.
//
//	scenarios.go   the table of scenarios
//	faults.go      what each does
//	run.go         the course of a scenario
//	stage.go       what a scenario is made of: store.go, instance.go, actor.go, link.go, tap.go
//	cast.go        who the clients are, and the streams of messages
//	publisher.go   the backend; push.go: one call of it
//	book.go        what was acknowledged and what arrived; verdict.go compares them
//	ghosts.go      who died unseen; remains.go: what is left when all have gone
//	watcher.go     who follows presence; attendance.go: what it was told
//	house.go       the watchers of a scenario; census.go: what they and the brokers say, and what is true
//	kills.go       the series of kills; killseries.go: what came of it
//	row.go         when a row is red
//	ledger.go      the pages that are written
package main
