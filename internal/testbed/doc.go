// Package testbed builds, starts and ends the programs of tests and benchmarks, reads their logs,
// calls the HTTP API of brokers, connects clients, and breaks the links between servers. Package
// redistest starts Redis.
//
// Files in reading order: build.go, process.go, program.go, broker.go, api.go, client.go, link.go,
// machine.go, testing.go.
package testbed
