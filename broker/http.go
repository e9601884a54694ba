package broker

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"switchboard/broker/api"
	"switchboard/broker/api/spec"
	"switchboard/broker/fastpush"
	"switchboard/broker/transport"
)

// Deadlines of an HTTP connection. TimingOptions.Connect bounds the head of a request.
const (
	readTimeout  = 30 * time.Second // from the first byte of a request to the end of its body
	writeTimeout = 30 * time.Second // for the client to read a response; not for WebSockets
	idleTimeout  = 2 * time.Minute  // between two requests
)

// mainHandler returns the handler of the HTTP port, and the fast push server that takes over
// connections from it.
func (b *Broker) mainHandler() (http.Handler, *fastpush.Server) {
	mux := http.NewServeMux()
	v1, fastPush := b.newAPI()
	mux.Handle("/v1/", v1)
	mux.Handle("/v1", v1)
	mux.HandleFunc("GET /{$}", b.serveIndex)
	if b.opts.Console != nil {
		mux.Handle("/console/", b.opts.Console)
	}
	spec.Handle(mux)
	mux.Handle("GET /ws", b.listeners.web)
	b.handleStreams(mux)
	linksHere := b.links != nil && !b.opts.separateLinkPort()
	if b.opts.Listen.Probes == "" {
		b.handleProbes(mux)
		mux.Handle("GET /metrics", b.metricsHandler())
	} else if linksHere {
		mux.HandleFunc("GET /healthz", b.healthz) // the janitor probes the port of the links
	}
	if linksHere {
		mux.Handle("/peer/", b.links.Handler())
	}
	var h http.Handler = mux
	if b.opts.Access.Keys.Open() {
		// Without keys only the loopback address protects the API. A browser on this machine reaches that
		// address, so pages of other origins must not push.
		h = b.refuseOtherOrigins(h)
	}
	return b.onlyKnownHosts(h), fastPush
}

// newAPI returns the handler of /v1, and the fast push server that answers with it.
func (b *Broker) newAPI() (v1 *api.API, fastPush *fastpush.Server) {
	fastPush = fastpush.New(fastpush.Options{
		Paths: []string{api.PathPush, api.PathBatch}, MaxBody: api.MaxBody,
		Answer: func(path, authorization string, body, dst []byte) (int, int, []byte) {
			a := v1.Push(path, authorization, body, dst)
			return a.Status, a.RetryAfter, a.Body
		},
		Idle: idleTimeout, ReadHead: b.opts.Timing.Connect, Read: readTimeout, Write: writeTimeout, Logger: b.opts.Logger,
	})
	o := api.Options{
		Pusher: b.pusher, Registry: b.opts.Store.Registry, Queue: b.opts.Store.Queue, Cluster: b.cluster, Presence: b.presence,
		Authorize: b.access.authorize, Key: b.access.describeKey, Self: b.self, Rights: b.access.rights, Webhooks: b.opts.Store.Webhooks,
		Watch: b.watchChannel, WatchClient: b.clientWatches.Add, Ending: b.ending, Namespaces: b.access.namespaces.Load,
		MaxMessage: b.opts.Limits.Message, CallLimits: b.opts.Limits.CallLimits,
		NotifyAfter: b.opts.Store.SetAckDeadline != nil, WriteTimeout: writeTimeout,
		Authenticated: transport.Authenticated, CountPush: b.metrics.push, Logger: b.log,
		Rejected: b.logRefused("a call is refused: "), Fields: b.opts.Limits.StateLimits,
		Calls: b.extensions.Calls(), RefusePage: b.refuseRequest, BeginRead: b.beginRead,
	}
	if !b.opts.Runtime.NoFastPush {
		o.AfterPush = fastPush.TakeOver
	}
	v1 = api.New(o)
	return v1, fastPush
}

// watchChannel implements api.Options.Watch.
func (b *Broker) watchChannel(ctx context.Context, channel string) (api.Watch, error) {
	return b.hub.Watch(ctx, channel)
}

// linkHandler returns the handler of the separate port for links.
func (b *Broker) linkHandler() http.Handler {
	mux := http.NewServeMux()
	b.handleProbes(mux)
	mux.Handle("/peer/", b.links.Handler())
	return mux
}

// serveIndex leads a browser to the console. It describes the port to other programs.
func (b *Broker) serveIndex(w http.ResponseWriter, r *http.Request) {
	if b.opts.Console != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Redirect(w, r, "/console/", http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "This is Switchboard, a broker of client connections: /ws is for clients (WebSocket), "+
		"/sse too (Server-Sent Events), "+
		"/v1 for backends (JSON), /healthz, /readyz and /metrics for operators. "+
		"/openapi.yaml (or .json) describes /v1, /asyncapi.yaml the messages of clients; see also docs/protocol.md of its source.\n")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
