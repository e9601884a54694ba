// Package e2e tests the whole system without fakes: a redis-server, three broker processes, a
// janitor process, and clients that do not use this repository's code: the npm package ws, a page
// in Chromium, and nc. Clients of package client take part too.
//
// TestDeliveryWhenBrokerIsKilled connects 300 clients, three devices of each user to three brokers.
// It pushes messages to channels, users, single clients and all clients. Meanwhile it kills one
// broker. The clients of that broker connect to others and resume, and pushes without a response
// are repeated with the same key. At the end, each message must have reached each of its clients
// exactly once and in order. When all clients have left, Redis must hold only documented keys, and
// each of them must be bounded.
//
// Further tests check the webhooks after brokers and janitors are killed, and streams of
// Server-Sent Events, with the EventSource of Chromium and of npm.
//
// The tests of channel state let a thousand clients compete for a hundred seats, let devices enter
// and leave a room at random, kill a broker whose clients own fields, and connect many clients to
// one state at once. Two of them have a large form: -herd=10000 connects ten thousand clients, and
// -owner-rounds=6 kills six brokers with the times of production. The commands, messages and pages
// of docs/state.md run, too.
//
//	delivery_test.go     the delivery test
//	webhooks_test.go     the webhook tests
//	eventsource_test.go  the test of Server-Sent Events; js/stream*: its clients
//	main_test.go         the tools and binaries that the tests need
//	deployment_test.go   Redis, the brokers and the janitor
//	process_test.go      one process
//	clients_test.go      the plans of the clients: kind, brokers, channels
//	runner_test.go       runs the clients; goclient_test.go: those in this process
//	device_test.go       a single client on a plain TCP connection
//	lostclients_test.go  clients that never return after their broker is killed
//	pushes_test.go       the pushes, and their repetition after a failure
//	ledger_test.go       compares accepted messages with received messages
//	offline_test.go      checks the stored state of clients that have left
//	seats_test.go        the competition for seats; js/seats.js: its clients
//	holds_test.go        the holds of seats
//	room_test.go         the room; js/member.js: its devices
//	owners_test.go       owners of fields whose broker is killed
//	herd_test.go         reconnects of many clients
//	statedoc_test.go     the commands and messages of docs/state.md; form_test.go: its form
//	sdk_test.go          client/js while brokers are killed and drained; js/sdk.js: its clients;
//	                     native/: React Native, whose modules run in Hermes
//	sdklive_test.go      the kit and the server entry of client/js; js/sdk-live.js: the script
//	tab_test.go          controls a page in Chromium
//	follower_test.go     a client that keeps the messages of one channel
//	stateapi_test.go     changes and reads of states over HTTP
//
// TestHolds lets a thousand clients of package client hold a hundred seats, while a broker and the
// master of Redis are killed.
//
// js/session.js implements the protocol of WebSockets and lines, for all clients except those of
// package client. js/state.js does so for clients that follow a state.
//
// All tests are long: `make test-long` runs them, or `go test -tags long`.
package e2e
