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
// Two further tests check the webhooks after brokers and janitors are killed. TestEventSource
// checks streams of Server-Sent Events, with the EventSource of Chromium and of npm.
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
//
// js/session.js implements the protocol of WebSockets and lines, for all clients except those of
// package client.
package e2e
