package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/delivery"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/queue"
	"switchboard/registry"

	"switchboard/internal/wire"
)

// Pusher stores messages and tells their owners.
type Pusher interface {
	PushBatch(ctx context.Context, pushes []delivery.Push)
	Notify(ctx context.Context, channels, clients []string) error
}

// Registry is what the API reads of the registry.
type Registry interface {
	User(ctx context.Context, user string) ([]registry.Binding, error)
	Users(ctx context.Context, users []string) ([][]registry.Binding, error)
	Channels(ctx context.Context, prefix, cursor string, limit int) ([]string, string, error)
	ChannelServers(ctx context.Context, channel string) ([]string, error)
}

// Queue is what the API reads of the queue.
type Queue interface {
	Client(ctx context.Context, client string) (queue.Client, bool, error)
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error)
	ChannelSize(ctx context.Context, channel string) (int, error)
}

// Presence says who is in the channels.
type Presence interface {
	Page(ctx context.Context, channel, cursor string, limit int) (presence.Page, error)
	// LeasedServers says which of the servers have a lease at this moment.
	LeasedServers(ctx context.Context, servers []string) (map[string]bool, error)
}

// Cluster is the instances as one: what must be asked of, or told to, the server that
// holds a connection.
type Cluster interface {
	// Servers are the live ones.
	Servers() []registry.Server
	// Live says whether a server is among them.
	Live(server string) bool
	// Subscribers is how many each channel has over all servers. partial says that a
	// server did not answer.
	Subscribers(ctx context.Context, channels []string) (counts []int, partial bool)
	// Disconnect closes the client's connection on server.
	Disconnect(ctx context.Context, server, client string) (bool, error)
	// Reply hands an answer to the client on server.
	Reply(ctx context.Context, server, client string, ref int64, data json.RawMessage) (bool, error)
}

// Options configures an API. All fields but Authenticated, Pushing, WriteTimeout and Logger are
// required.
type Options struct {
	Pusher   Pusher
	Registry Registry
	Queue    Queue
	Cluster  Cluster
	Presence Presence
	// Authorize checks the API key, given the value of the header, and that it has the scope. It gives what the key may
	// push; nil for any number.
	Authorize func(authorization, scope string) (*limit.SharedBucket, error)
	// Rejected is called for each call without a good API key, with one of the Rejected constants
	// and the caller's address, which is empty on a connection that pushed with a good key before.
	// Nil means that nothing is.
	Rejected   func(reason, address string)
	Namespaces func() *namespace.Set // those of now
	MaxMessage int                   // bytes of one payload
	MaxBatch   int                   // pushes of one batch, and targets of one push
	MaxTargets int                   // of one call, over all its pushes
	Notifies   bool                  // a push may have notify_after
	CountPush  func(kind string, code string)
	// Authenticated is called for each call over net/http that has a valid API key, before it is
	// answered. Nil means that nothing is called.
	Authenticated func(w http.ResponseWriter, r *http.Request)
	// WriteTimeout is how long the answer to a push over net/http may take from when it begins.
	// Zero means as long as the http.Server gives it, which counts from the head of the request.
	WriteTimeout time.Duration
	// Pushing is told of a push over net/http that was accepted, when its answer is written. Zero means nobody.
	AfterPush func(w http.ResponseWriter, r *http.Request)
	Logger    zerolog.Logger
}

// MaxBody bounds a request's body: a batch of payloads of ordinary size.
const MaxBody = 16 << 20

type api struct{ Options }

// API is the handler of /v1, and the same pushes without net/http: see Push.
type API struct {
	api
	http.Handler
}

// New returns an API.
func New(opts Options) *API {
	a := api{opts}
	mux := http.NewServeMux()
	known := http.NewServeMux()
	for _, c := range a.calls() {
		mux.HandleFunc(c.pattern, a.guarded(c))
		known.HandleFunc(c.pattern, func(http.ResponseWriter, *http.Request) {})
	}
	mux.HandleFunc("/", a.guarded(call{handle: a.unknown(known)}))
	return &API{a, mux}
}

// call is one call of the API, and what an API key needs for it.
type call struct {
	pattern string
	scope   string // "" for any key
	handle  http.HandlerFunc
	push    pushCall // in the place of handle
}

// The scopes, as the keys have them: what tells clients something, what asks, and what interferes.
const (
	scopePush  = "push"
	scopeRead  = "read"
	scopeAdmin = "admin"
)

// calls is all of /v1.
func (a api) calls() []call {
	return []call{
		{"POST " + PathPush, scopePush, nil, a.push},
		{"POST " + PathBatch, scopePush, nil, a.batch},
		{"POST /v1/notify", scopePush, a.notify, nil},
		{"POST /v1/reply", scopePush, a.reply, nil},
		{"GET /v1/channels", scopeRead, a.channels, nil},
		{"GET /v1/channels/{channel}", scopeRead, a.channel, nil},
		{"GET /v1/channels/{channel}/history", scopeRead, a.history, nil},
		{"GET /v1/channels/{channel}/presence", scopeRead, a.presence, nil},
		{"GET /v1/users/{user}", scopeRead, a.user, nil},
		{"POST /v1/users/query", scopeRead, a.query, nil},
		{"GET /v1/servers", scopeRead, a.servers, nil},
		{"POST /v1/users/{user}/disconnect", scopeAdmin, a.disconnectUser, nil},
		{"POST /v1/clients/{client}/disconnect", scopeAdmin, a.disconnectClient, nil}, // {client}: alice%2Fphone
		{"POST /v1/clients/{user}/{client}/disconnect", scopeAdmin, a.disconnectClient, nil},
	}
}

// guarded is the handler of a call behind the check of the API key.
func (a api) guarded(c call) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		by, err := a.Authorize(r.Header.Get("Authorization"), c.scope)
		if err != nil {
			a.rejected(err, r.Header.Get("Authorization"), r.RemoteAddr)
			a.fail(w, err)
			return
		}
		if a.Authenticated != nil {
			a.Authenticated(w, r)
		}
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
		if c.push != nil {
			a.over(w, r, c.push, by)
			return
		}
		c.handle(w, r)
	}
}

// unknown answers calls that known does not have: a path, or a method of a path.
func (a api) unknown(known *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		refused := muxRefusal{header: make(http.Header)}
		h, _ := known.Handler(r)
		h.ServeHTTP(&refused, r)
		if refused.status != http.StatusMethodNotAllowed {
			a.fail(w, wire.Errorf(wire.NotFound, "there is no %.20s %.200s", r.Method, r.URL.Path))
			return
		}
		allowed := refused.header.Get("Allow")
		w.Header().Set("Allow", allowed)
		answer := a.failed(wire.Errorf(wire.BadRequest, "%.20s %.200s: the method must be %s", r.Method, r.URL.Path, allowed))
		answer.Status = refused.status
		answer.send(w)
	}
}

// muxRefusal keeps how an http.ServeMux refuses a request.
type muxRefusal struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (r *muxRefusal) Header() http.Header { return r.header }

// Write implements http.ResponseWriter.
func (r *muxRefusal) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (r *muxRefusal) WriteHeader(status int) { r.status = status }

func write(w http.ResponseWriter, status int, v any) { encoded(status, v).send(w) }

// refusalBody is an error in an answer.
type refusalBody struct {
	Code    wire.ErrorCode `json:"code"`
	Message string         `json:"message"`
}

// refusal is err as a backend is told: what is no *wire.Error comes from the store.
func (a api) refusal(err error) *refusalBody {
	if own, ok := errors.AsType[*wire.Error](err); ok {
		return &refusalBody{own.Code, own.Message}
	}
	if errors.Is(err, registry.ErrBadCursor) {
		return &refusalBody{wire.BadRequest, "cursor: it is not one that an earlier page gave"}
	}
	if errors.Is(err, queue.ErrNoReplicas) {
		return &refusalBody{wire.BadRequest, "durable: this broker keeps messages in memory, where there are no replicas"}
	}
	if errors.Is(err, queue.ErrNotReplicated) {
		return &refusalBody{wire.Unavailable, "stored, but not confirmed by a replica in time; repeat it with the same key to wait for one again"}
	}
	if errors.Is(err, delivery.ErrNoAckDeadline) {
		a.Logger.Warn().Err(err).Msg("a push with notify_after is not watched")
		return &refusalBody{wire.Unavailable, "stored, but not noted for notify_after; repeat it with the same key, and it is not stored twice"}
	}
	if errors.Is(err, context.Canceled) { // the caller went away
		return &refusalBody{wire.Timeout, "the call was given up"}
	}
	a.Logger.Warn().Err(err).Msg("store call failed")
	return &refusalBody{wire.Unavailable, "the store cannot be reached; try again later. A push may have been stored: with a key it is not stored twice"}
}

func (a api) fail(w http.ResponseWriter, err error) { a.failed(err).send(w) }

// failed is the answer to a call that failed.
func (a api) failed(err error) Answer {
	refusal := a.refusal(err)
	answer := encoded(status(refusal.Code), map[string]any{"error": refusal})
	if refusal.Code == wire.Unavailable || refusal.Code == wire.RateLimited {
		answer.RetryAfter = 1
	}
	if own, ok := errors.AsType[*wire.Error](err); ok && own.After > 0 {
		answer.RetryAfter = limit.Seconds(own.After)
	}
	return answer
}

func status(code wire.ErrorCode) int {
	switch code {
	case wire.BadRequest:
		return http.StatusBadRequest
	case wire.Unauthorized:
		return http.StatusUnauthorized
	case wire.Forbidden:
		return http.StatusForbidden
	case wire.NotFound:
		return http.StatusNotFound
	case wire.TooLarge:
		return http.StatusRequestEntityTooLarge
	case wire.RateLimited:
		return http.StatusTooManyRequests
	case wire.Timeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusServiceUnavailable
}
