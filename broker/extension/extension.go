// Package extension is for systems that are built on the broker and run in its process, such as
// rooms: what they add, and what the broker offers them.
package extension

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/broker/api"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
)

// Extension is a system that is built on the broker and runs in its process, such as rooms. It adds
// request methods for clients, HTTP calls for backends, and channels of its own.
type Extension struct {
	// Name names the extension in errors and in the log.
	Name string
	// Methods answer the requests of clients, by the method of the request.
	Methods map[string]session.Method
	// ClientCalls are like Methods, but only Host.CallAs can call them, in the name of a client.
	ClientCalls map[string]session.Method
	// Calls are HTTP calls under /v1.
	Calls []api.Call
	// Channels are the channels of the extension. A namespace of the settings must not cover them.
	Channels []ChannelKind
	// Run does the background work until ctx ends. Nil means that there is none.
	Run func(ctx context.Context) error
	// Metrics are registered at the Registerer of the broker.
	Metrics []prometheus.Collector
	// Owned are the kinds of objects that users own in the store of the extension. The API shows how
	// many a user may have, and can remove all of a user.
	Owned []Owned
}

// ChannelKind is all channels with a prefix.
type ChannelKind struct {
	// Rule is the namespace of the channels. Its name is a prefix and *, such as room:*.
	Rule namespace.Rule
	// Authorize decides whether a client that the rule allows may subscribe. With it, a client can
	// read messages, fields and members only while subscribed. Nil means that the rule decides.
	Authorize session.Authorizer
}
