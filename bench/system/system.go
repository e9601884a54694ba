// Package system is what the benchmark suite measures: this project's broker, the peers, and the
// floor program, each started, configured and stopped in the same manner.
package system

import (
	"context"

	"switchboard/bench/swarm"
)

// System is one kind of server.
type System interface {
	// Name is that in tables: "switchboard", "nchan", "floor".
	Name() string
	// Start runs it on free ports of 127.0.0.1. An error says why it cannot be had here.
	Start(ctx context.Context, s Setup) (Running, error)
}

// Setup is what a scenario asks of a system.
type Setup struct {
	Dir       string // exists; for configs, logs, sockets
	History   bool   // messages are kept so that clients can resume
	Redis     string // host:port of a Redis started for this run; zero for none
	Clients   int    // how many will connect at most
	Transport string // of a switchboard: "tcp", "ws" (the dense listener) or "http". Peers have one
	Instances int    // brokers that share the Redis, see Spread. Zero means 1; peers have one
}

// Running is a system that was started. It takes connections and messages.
type Running interface {
	PIDs() []int            // of the server's processes, Redis not among them
	Addr() string           // host:port that subscribers connect to
	Dialect() swarm.Dialect // a new one for each swarm
	// Publisher is for one goroutine.
	Publisher() (Publisher, error)
	Stop() error
}

// Spread is a Running of several instances.
type Spread interface {
	Addrs() []string // subscribers connect to these in turn
}

// Teller is a Running that tells a backend what happens.
type WebhookCounter interface {
	// Told is how many events the backend got by now, and the process that sends them; ok is false
	// when there is no backend.
	WebhookEvents() (events int64, pid int, ok bool)
}

// Publisher pushes messages, as a backend would. A payload is JSON, see swarm.AppendPayload.
type Publisher interface {
	// Publish returns when the server has acknowledged the message.
	Publish(ctx context.Context, channel string, data []byte) error
	// PublishBatch pushes data[i] to channels[i] in one call; it is errors.ErrUnsupported where a
	// system has no such thing.
	PublishBatch(ctx context.Context, channels []string, data [][]byte) error
	Close() error
}
