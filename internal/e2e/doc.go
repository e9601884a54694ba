// Package e2e tests everything together, with nothing made up: a redis-server, three broker
// processes, a janitor process, and clients over libraries that are not ours: the npm
// package ws, a page in Chromium, nc; and the Go client of this repository beside them.
//
// One test plays one story. Some 300 clients connect, three devices of each user to three
// instances. Messages are pushed to channels, users, single clients and everyone; in the
// middle one broker is killed, its clients go elsewhere and resume, and pushes that it left
// unanswered are made again with the same key. In the end every message was at every
// addressee exactly once and in order, and when all have left Redis holds no key that
// the design does not know, and none that nobody bounds.
//
//	story_test.go     the story
//	main_test.go      the tools and binaries that it needs
//	await_test.go     how one waits: no sleeping
//	fleet_test.go     Redis, the brokers, the janitor
//	cast_test.go      who the clients are, and where they go
//	troupe_test.go    how they are run; goclient_test.go: those in this process
//	ghosts_test.go    clients that die with their broker
//	streams_test.go   what is pushed, to whom, and again after a failure
//	ledger_test.go    what was accepted, and what arrived
//	keyspace_test.go  what Redis holds in the end
//
// The clients' side of the protocol is js/session.js, for all but the Go clients.
package e2e
