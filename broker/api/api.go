package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"switchboard/broker/delivery"
	"switchboard/broker/fields"
	"switchboard/broker/health"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/broker/rights"
	"switchboard/queue"
	"switchboard/registry"

	"switchboard/internal/wire"
)

// Pusher stores messages and notifies the servers that deliver them.
type Pusher interface {
	// PushBatch sets the result of each push in it, see delivery.Pusher.
	PushBatch(ctx context.Context, pushes []delivery.Push)
	Notify(ctx context.Context, channels, clients []string) error
	// Erase erases a message of a channel, see delivery.Pusher.
	Erase(ctx context.Context, channel string, id int64, durable bool) (delivery.EraseResult, error)
}

// Registry is the part of the registry that the API reads.
type Registry interface {
	User(ctx context.Context, user string) ([]registry.Binding, error)
	Users(ctx context.Context, users []string) ([][]registry.Binding, error)
	CheckTokens(ctx context.Context, list []registry.UserBinding) []error
	// RevokedBefore returns the time before which a user's tokens are revoked, Unix ms; 0 for none.
	RevokedBefore(ctx context.Context, user string) (int64, error)
	Channels(ctx context.Context, prefix, cursor string, limit int) ([]string, string, error)
	ChannelServers(ctx context.Context, channel string) ([]string, error)
	ClientPage(ctx context.Context, server, cursor string, limit int) ([]string, string, error)
}

// Queue is the part of the queue that the API reads.
type Queue interface {
	Client(ctx context.Context, client string) (queue.Client, bool, error)
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error)
	ReadClient(ctx context.Context, client string, after int64, limit int) (queue.Page, error)
	ChannelSize(ctx context.Context, channel string) (int, error)
	ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage]
}

// Presence returns the members of channels.
type Presence interface {
	Page(ctx context.Context, channel, cursor string, limit, maxBytes int) (presence.Page, error)
	// LeasedServers reports which of the servers are live now, rather than at the last beat.
	LeasedServers(ctx context.Context, servers []string) (map[string]bool, error)
}

// Cluster lists the live servers, counts subscribers, and calls the server that holds a connection.
// A server is live while it holds a lease, which it renews at each beat, every 2 s by default.
type Cluster interface {
	// ServerNumbers returns the live servers with the numbers of their connections, users and
	// channels. It reads them from the store at most once a beat.
	ServerNumbers(ctx context.Context) []registry.Server
	// Live reports whether the server was live at the last beat of this server.
	Live(server string) bool
	// Subscribers returns the number of subscribers of each channel over all servers. partial is
	// true if a server did not answer.
	Subscribers(ctx context.Context, channels []string) (counts []int, partial bool)
	// Disconnect closes the client's connection on server. It reports whether there was one. A server
	// that is not live has none.
	Disconnect(ctx context.Context, server, client string) (bool, error)
	// Revoke revokes tokens of a user, and closes the connections that used them. pending is the
	// number of servers that have not confirmed it in time. They close such connections at their next
	// beat.
	Revoke(ctx context.Context, v registry.Revocation) (r registry.Revoked, closed, pending int, err error)
	// Subscribe changes the subscriptions that the backend has made for clients. Servers that have
	// not confirmed it in time apply it after their next beat.
	Subscribe(ctx context.Context, c registry.SubscriptionChange) (SubscriptionsChanged, error)
	// Stats returns the statistics of the live servers. partial is true if a server did not answer;
	// it is missing then.
	Stats(ctx context.Context) (list []Stats, partial bool)
	// OnlineUsers counts the users that are online, each once. It returns false if a live server has
	// not yet said which users it has.
	OnlineUsers(ctx context.Context) (UserCount, bool)
	// Health returns what needs the attention of an operator, on all servers and in the store.
	Health(ctx context.Context) health.Report
	// Connection describes the client's connection on server, or returns nil if there is none.
	Connection(ctx context.Context, server, client string) (*Connection, error)
	// Reply sends the backend's reply to the client on server. It reports whether the client is there.
	Reply(ctx context.Context, server, client string, ref int64, data json.RawMessage) (bool, error)
}

// CallLimits bounds calls that push.
type CallLimits struct {
	Batch   int `setting:"limits.batch" default:"1000" help:"pushes in one batch call, and targets of one push"`
	Targets int `setting:"limits.targets" default:"10000" help:"targets of one call, over all its pushes"`
}

// Options configures an API. Fields, Calls, NotifyAfter and Logger are optional, and so is each
// field that says what nil or zero means. All others are required.
type Options struct {
	Pusher   Pusher
	Registry Registry
	Queue    Queue
	Cluster  Cluster
	Presence Presence
	// Fields bounds the changes of states.
	Fields fields.StateLimits
	CallLimits
	// Authorize checks that the value of the header Authorization has an API key with the scope. It
	// returns the rate limit of the key's pushes, or nil for none.
	Authorize func(authorization, scope string) (*limit.SharedBucket, error)
	// Key describes the API key in the header value of an authorized call.
	Key func(authorization string) Key
	// Self describes this server.
	Self func() Self
	// Rights returns the current access rules, to explain what a client may do.
	Rights func() rights.Rules
	// Watch follows the last message id of a channel.
	Watch func(ctx context.Context, channel string) (Watch, error)
	// WatchClient returns a channel that receives a value when the client's queue may have a new
	// message. It may receive none while the client is not connected to this server. stop ends it.
	WatchClient func(client string) (changed <-chan struct{}, stop func())
	// Webhooks shows and repeats the events that are sent to the backend. Nil means that none are.
	Webhooks Webhooks
	// Ending is closed when the server begins to shut down. Waiting calls then end. Nil means never.
	Ending <-chan struct{}
	// Rejected is called for each call that Authorize refuses, with one of the Rejected constants and
	// the caller's address. The address is empty for a call of API.Push. Nil means no call.
	Rejected func(reason, address string)
	// Calls are the calls of extensions.
	Calls []Call
	// RefusePage returns why a public call is refused because of the web page that makes it, or "" to
	// accept it. Nil means that every public call with the header Origin is refused.
	RefusePage func(r *http.Request) (refusal string)
	// BeginRead is called before a public call. It returns the context in which the call reads the
	// store and a function to call at its end, or the error to answer. Nil means no call.
	BeginRead  func(r *http.Request) (ctx context.Context, end func(), err error)
	Namespaces func() *namespace.Set // the current ones
	MaxMessage int                   // bytes of one payload
	// NotifyAfter allows the field notify_after of a push.
	NotifyAfter bool
	// CountPush counts one target of a push: its kind and the error code, or "ok".
	CountPush func(kind string, code string)
	// Authenticated is called for each call over net/http that has a valid API key, before it is
	// answered. Nil means no call.
	Authenticated func(w http.ResponseWriter, r *http.Request)
	// WriteTimeout bounds writing the answer to a push over net/http. Zero means the timeout of the
	// http.Server, which counts from the head of the request.
	WriteTimeout time.Duration
	// AfterPush is called after the answer to an accepted push over net/http is written. Nil means
	// no call.
	AfterPush func(w http.ResponseWriter, r *http.Request)
	Logger    zerolog.Logger
}

// MaxBody is the most bytes of a request's body. A batch of payloads of ordinary size fits.
const MaxBody = 16 << 20

type api struct {
	Options
	*shared
}

// shared is the state that all copies of an api share.
type shared struct {
	waits waits
	reads singleflight.Group // reads of channels for calls that wait, see readOnce
}

// API serves /v1. Its ServeHTTP serves all calls. Its Push serves pushes without net/http.
type API struct {
	api
	http.Handler
}

// New returns an API.
func New(opts Options) *API {
	a := api{opts, new(shared)}
	mux := http.NewServeMux()
	patterns := http.NewServeMux() // mux without the pattern "/", for notFound
	public := map[string]bool{}    // paths with a handler for preflight requests
	for _, e := range a.endpoints() {
		handle := a.authorized(e)
		if e.Public {
			handle = a.public(e)
			if _, path, _ := strings.Cut(e.Pattern, " "); !public[path] {
				public[path] = true
				mux.HandleFunc("OPTIONS "+path, a.preflight())
			}
		}
		mux.HandleFunc(e.Pattern, handle)
		patterns.HandleFunc(e.Pattern, func(http.ResponseWriter, *http.Request) {})
	}
	mux.HandleFunc("/", a.authorized(endpoint{serve: a.notFound(patterns)}))
	return &API{a, mux}
}

// endpoint is one call of the API. Exactly one of Handle, wait, push and serve is set.
type endpoint struct {
	Call
	wait  func(r *http.Request, q messageQuery) (any, error)
	push  pushFunc
	serve http.HandlerFunc // for unknown paths and preflights: the requests are not checked
}

// endpoints returns all calls of /v1, with those of the extensions.
func (a api) endpoints() []endpoint {
	var (
		page     = []string{"limit", "cursor"}
		search   = []string{"prefix", "limit", "cursor"}
		messages = []string{"after", "limit", "wait"}
	)
	list := []endpoint{
		{Call: Call{Pattern: "POST " + PathPush, Scope: ScopePush, Body: true}, push: a.push},
		{Call: Call{Pattern: "POST " + PathBatch, Scope: ScopePush, Body: true}, push: a.batch},
		{Call: Call{Pattern: "GET /v1/channels/{channel}/history", Scope: ScopeRead, Query: messages}, wait: a.history},
		{Call: Call{Pattern: "GET /v1/clients/{client}/queue", Scope: ScopeRead, Query: messages}, wait: a.clientQueue},
	}
	for _, c := range append([]Call{
		{Pattern: "POST /v1/notify", Scope: ScopePush, Handle: a.notify, Body: true},
		{Pattern: "POST /v1/erase", Scope: ScopePush, Handle: a.erase, Body: true},
		{Pattern: "POST /v1/reply", Scope: ScopePush, Handle: a.reply, Body: true},
		{Pattern: "GET /v1/channels", Scope: ScopeRead, Handle: a.channels, Query: search},
		{Pattern: "GET /v1/channels/{channel}", Scope: ScopeRead, Handle: a.channel},
		{Pattern: "GET /v1/channels/{channel}/presence", Scope: ScopeRead, Handle: a.presence, Query: page},
		{Pattern: "GET /v1/channels/{channel}/state", Scope: ScopeRead, Handle: a.channelState, Query: search},
		{Pattern: "POST /v1/state/query", Scope: ScopeRead, Handle: a.queryStates, Body: true},
		{Pattern: "GET /v1/clients/{client}", Scope: ScopeRead, Handle: a.client},
		{Pattern: "GET /v1/users", Scope: ScopeRead, Handle: a.onlineUsers, Query: page},
		{Pattern: "GET /v1/users/{user}", Scope: ScopeRead, Handle: a.user},
		{Pattern: "POST /v1/users/query", Scope: ScopeRead, Handle: a.queryUsers, Body: true},
		{Pattern: "GET /v1/servers", Scope: ScopeRead, Handle: a.servers},
		{Pattern: "GET /v1/self", Handle: a.self},
		{Pattern: "GET /v1/stats", Scope: ScopeRead, Handle: a.stats},
		{Pattern: "GET /v1/health", Scope: ScopeRead, Handle: a.health},
		{Pattern: "POST /v1/check", Scope: ScopeRead, Handle: a.check, Body: true},
		{Pattern: "GET /v1/webhooks", Scope: ScopeRead, Handle: a.withWebhooks(a.backlog)},
		{Pattern: "GET /v1/webhooks/dead", Scope: ScopeRead, Handle: a.withWebhooks(a.deadLetters), Query: page},
		{Pattern: "POST /v1/webhooks/dead/retry", Scope: ScopeAdmin, Handle: a.withWebhooks(a.retryDeadLetters)},
		{Pattern: "POST /v1/webhooks/dead/{event}/retry", Scope: ScopeAdmin, Handle: a.withWebhooks(a.retryDeadLetter)},
		{Pattern: "DELETE /v1/webhooks/dead/{event}", Scope: ScopeAdmin, Handle: a.withWebhooks(a.dropDeadLetter)},
		{Pattern: "POST /v1/users/{user}/revoke", Scope: ScopeAdmin, Handle: a.revoke, Body: true},
		{Pattern: "POST /v1/clients/{client}/revoke", Scope: ScopeAdmin, Handle: a.revoke, Body: true},
		{Pattern: "POST /v1/users/{user}/subscribe", Scope: ScopeAdmin, Handle: a.subscribe, Body: true},
		{Pattern: "POST /v1/clients/{client}/subscribe", Scope: ScopeAdmin, Handle: a.subscribe, Body: true},
		{Pattern: "POST /v1/users/{user}/unsubscribe", Scope: ScopeAdmin, Handle: a.unsubscribe, Body: true},
		{Pattern: "POST /v1/clients/{client}/unsubscribe", Scope: ScopeAdmin, Handle: a.unsubscribe, Body: true},
		{Pattern: "POST /v1/users/{user}/disconnect", Scope: ScopeAdmin, Handle: a.disconnectUser},
		{Pattern: "POST /v1/clients/{client}/disconnect", Scope: ScopeAdmin, Handle: a.disconnectClient},
	}, a.Calls...) {
		list = append(list, endpoint{Call: c})
	}
	// {client} is a whole id with an escaped slash, such as alice%2Fphone. It also fits as it is.
	for _, e := range list {
		if before, after, ofClient := strings.Cut(e.Pattern, " /v1/clients/{client}"); ofClient {
			e.Pattern = before + " /v1/clients/{user}/{client}" + after
			list = append(list, e)
		}
	}
	return list
}

// Endpoints returns all calls of /v1, with those of the extensions.
func Endpoints(calls []Call) (list []Call) {
	for _, e := range (api{Options: Options{Calls: calls}}).endpoints() {
		list = append(list, e.Call)
	}
	return list
}

// handle answers a request to e. rate is the rate limit of the API key's pushes, or nil for none.
func (a api) handle(e endpoint, w http.ResponseWriter, r *http.Request, rate *limit.SharedBucket) {
	if e.serve != nil {
		e.serve(w, r)
		return
	}
	if err := e.checkRequest(r); err != nil {
		a.writeError(w, err)
		return
	}
	switch {
	case e.push != nil:
		a.servePush(w, r, e.push, rate)
	case e.wait != nil:
		a.answerOf(a.serveWait(w, r, e.wait)).writeTo(w)
	default:
		a.answerOf(e.Handle(r)).writeTo(w)
	}
}

// authorized returns a handler that checks the API key and then serves e.
func (a api) authorized(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rate, err := a.Authorize(r.Header.Get("Authorization"), e.Scope)
		if err != nil {
			a.rejected(err, r.Header.Get("Authorization"), r.RemoteAddr)
			a.writeError(w, err)
			return
		}
		if a.Authenticated != nil {
			a.Authenticated(w, r)
		}
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
		a.handle(e, w, r, rate)
	}
}

// notFound returns a handler for requests that no pattern matches. It answers 405 if another method
// is allowed at the path, else 404.
func (a api) notFound(patterns *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		refused := muxRefusal{header: make(http.Header)}
		h, _ := patterns.Handler(r)
		h.ServeHTTP(&refused, r)
		if refused.status != http.StatusMethodNotAllowed {
			a.writeError(w, wire.Errorf(wire.NotFound, "there is no %.20s %.200s", r.Method, r.URL.Path))
			return
		}
		allowed := refused.header.Get("Allow")
		w.Header().Set("Allow", allowed)
		answer := a.errorAnswer(wire.Errorf(wire.BadRequest, "%.20s %.200s: the method must be %s", r.Method, r.URL.Path, allowed))
		answer.Status = refused.status
		answer.writeTo(w)
	}
}

// muxRefusal is a ResponseWriter that records how an http.ServeMux refuses a request.
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
