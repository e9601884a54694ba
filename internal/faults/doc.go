// Command faults writes the fault ledger: it breaks things on purpose while messages flow, and
// reports what happened to the messages, to presence and to the states of channels.
//
//	go run ./internal/faults                 all scenarios; writes docs/faults.md and ledger.json
//	go run ./internal/faults --only 'Sentinel' --short
//
// A scenario starts a Redis, brokers and a janitor as processes. It connects some hundred clients,
// three devices of each user, and pushes over plain HTTP. Then it injects and removes the fault,
// ends the load, waits for outstanding messages and disconnects all clients. Three fifths of the
// clients use package client. A fifth uses Server-Sent Events, and resumes with the id of the last
// event. A fifth uses client/js, in one Node process: a message counts when a handler of the
// application has it. Handlers of the inbox fail now and then, and must get the message again. Some
// of these clients are closed and started again with the positions in their storage, like reloaded
// pages. In the end all messages of their inboxes must be acknowledged. Without Node, or the
// packages that .ci/install installs, nothing runs, and the error says what is missing.
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
// Some channels have a state, and some clients follow and change it: they claim seats of a group
// with a limit, count within bounds, compare and set, renew leases, and own a field each. Where
// pushes are durable, their updates are, too. The brokers have a namespace, and verify tokens. The
// updates and refusals that they receive are compared with the log of the store, which the program
// reads from Redis, and their fields with those of the store. A row is RED if an update is not in
// the log, except where Redis lost it and it was not durable; if a follower missed a change that
// neither pages nor a gap declared; if its fields differ in the end; if a group is above its limit
// at any id; if a field outlives its owner or its lease, or ends before; or if a refusal or an
// acceptance contradicts the log.
//
// Meanwhile every fifth message of each channel is erased. Each client that was to receive it must
// receive the report of the erasure, and no message after that report. In the end all messages are
// read from Redis, in the histories of all brokers, and by new clients that subscribe from the
// beginning, and from a position that brokers have in their memory. A row is RED if any of them
// shows what was erased, if a report did not arrive and no gap covers it, or if the new clients
// miss anything else.
//
// The former version is built from the history of the clone: the last revision without
// broker/peer/features.go. In a shallow clone nothing runs, and the error says how to fetch the
// history. With --only, and without that row, no history is needed.
//
// --seed determines all choices: victims, moments, and which connections are cut. It does not
// determine the random choices of the programs under test: which broker a client tries first, and
// retry jitter.
//
// Files in reading order:
//
//	main.go            the command; options.go: its flags
//	scenarios.go       the table of scenarios
//	faults.go          what each fault does
//	former.go          builds the programs of a former version, and mixes versions; build.go: of this
//	                   one
//	run.go             the course of a scenario
//	bed.go             the processes and clients of a scenario; its parts are store.go,
//	                   testclient.go, eventstream.go, clientlink.go
//	sdk.mjs            the clients of client/js; sdkprocess.go: their process; sdkclient.go: one of
//	                   them; sdkcheck.go: what they have acknowledged
//	workload.go        the clients and the streams of messages
//	publisher.go       the backend; push.go: one call of it
//	journal.go         acknowledgements and arrivals
//	verdict.go         compares the two; losses.go explains losses
//	token.go           the tokens of all clients
//	ghosts.go          clients that die with their broker; leftovers.go: state after all have left
//	watcher.go         a presence watcher; presencejournal.go: the events that it received
//	watchers.go        the watchers of a scenario; presencecheck.go checks what they report
//	settlement.go      waits until no event from before the fault is on its way
//	statewriters.go    the changes of states; stateupdate.go: one of them; statebackend.go: over HTTP
//	statejournal.go    updates, refusals, and what followers received
//	statelog.go        the log of a state, and the values that it gives the fields
//	stateverdict.go    compares the three; statecheck.go: when, and with the fields of the store
//	statetable.go      the table about states
//	erase.go           the backend that erases messages; erasejournal.go: what clients learned of it
//	erasecheck.go      reads all messages in the end; erasetable.go: the table about erasures
//	kills.go           the series of kills; killreport.go: its result
//	row.go             when a row is red
//	ledger.go          the files that are written; clock.go: the times in them
package main
