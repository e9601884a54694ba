// Package extension is for systems that stand on the broker and run in its process, such as rooms:
// what they add, and what the broker offers them.
package extension

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/broker/api"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
)

// Extension is a system that stands on the broker and runs in its process, such as rooms. It adds
// request methods for clients, HTTP calls for backends, and channels of its own.
type Extension struct {
	// Name names the extension in errors and in the log.
	Name string
	// Methods answer the requests of clients, by the method of the request.
	Methods map[string]session.Method
	// ClientCalls are like Methods, but clients cannot call them: Host.CallAs does.
	ClientCalls map[string]session.Method
	// Calls are HTTP calls under /v1.
	Calls []api.Call
	// Channels are the channels of the extension. No namespace of the settings may have them.
	Channels []ChannelKind
	// Run does the work that no call causes, until ctx ends. Nil means that there is none.
	Run func(ctx context.Context) error
	// Metrics are registered at the Registerer of the broker.
	Metrics []prometheus.Collector
	// Owned are the kinds of objects that users own in the store of the extension.
	Owned []Owned
}

// ChannelKind is all channels with a prefix.
type ChannelKind struct {
	// Rule is the namespace of the channels. Its name is a prefix and *, such as room:*.
	Rule namespace.Rule
	// Authorize decides whether a client that the rule allows may subscribe. Reads without a
	// subscription, of messages, fields or members, are then refused. Nil means that the rule decides.
	Authorize session.Authorizer
}
