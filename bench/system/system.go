package system

import (
	"context"

	"switchboard/bench/swarm"
)

// System is one kind of server.
type System interface {
	// Start starts the system on free ports of 127.0.0.1. An error means that it cannot run on this
	// machine, and contains the reason.
	Start(ctx context.Context, s Setup) (Running, error)
}

// Setup holds the requirements of a scenario.
type Setup struct {
	Dir       string // existing directory for configs, logs and sockets
	History   bool   // messages are kept so that clients can resume
	Redis     string // host:port of a Redis started for this run; empty means none
	Clients   int    // maximum number of connections
	Transport string // of a switchboard: "tcp", "ws" (WebSocket on the TCP port), "http" (WebSocket on the HTTP port) or "sse". Ignored by peers
	Instances int    // brokers that share the Redis, see MultiInstance. Zero means 1. Ignored by peers
	Cursors   bool   // clients send values; the dialect is a swarm.Sender
	Heap      bool   // Running.Heap is called
}

// Running is a started system, which accepts connections and messages.
type Running interface {
	PIDs() []int            // of the server's processes without Redis
	Addr() string           // host:port for subscribers
	Dialect() swarm.Dialect // a new one for each swarm
	// Publisher returns a publisher for one goroutine.
	Publisher() (Publisher, error)
	Stop() error
}

// MultiInstance is implemented by a Running with several brokers.
type MultiInstance interface {
	Addrs() []string // subscribers are distributed over these round robin
}

// Killable is implemented by a Running that can be killed without a chance to end in order.
type Killable interface {
	Kill() // it may be called again, and after Stop
}

// Monitored is implemented by a Running with metrics in the format of Prometheus.
type Monitored interface {
	HTTP() string // host:port of the API of the first instance, which has /metrics
}

// WebhookCounter is implemented by a Running that sends webhooks to a backend.
type WebhookCounter interface {
	// WebhookEvents returns the number of events that the backend has received, and the id of the
	// process that sends them. ok is false without a backend.
	WebhookEvents() (events int64, pid int, ok bool)
}

// Publisher pushes messages as a backend would. A payload is JSON, see swarm.AppendPayload.
type Publisher interface {
	// Publish returns when the server has acknowledged the message.
	Publish(ctx context.Context, channel string, data []byte) error
	// PublishBatch pushes data[i] to channels[i] in one call. It returns errors.ErrUnsupported if
	// the system has no batches.
	PublishBatch(ctx context.Context, channels []string, data [][]byte) error
	Close() error
}
