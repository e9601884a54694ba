// Package cluster is what a server knows of the others and asks them: it finds the server that
// holds a client and acts on its connection there, and it adds up what each server has.
package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"switchboard/broker/api"
	"switchboard/broker/health"
	"switchboard/broker/hub"
	"switchboard/broker/member"
	"switchboard/broker/peer"
	"switchboard/broker/session"
	"switchboard/janitor/heartbeat"
	"switchboard/queue"
	"switchboard/registry"
)

// The calls between servers, by their names on the links.
const (
	callCount      = "count"      // count the subscribers of channels
	callDisconnect = "disconnect" // disconnect a client
	callRevoke     = "revoke"     // close the connections with revoked tokens
	callLists      = "lists"      // apply the subscriptions that the backend has made for clients
	callReply      = "reply"      // deliver a reply to a client
	callEnd        = "end"        // end a client's subscription
	callAs         = "as"         // call a method of an extension in the name of a client
	callDescribe   = "describe"   // describe a client's connection
	callStats      = "stats"      // return the numbers of the server
	callUsers      = "users"      // summarize the users of the server
)

// callTimeout bounds a call to another server while a backend waits for it.
const callTimeout = 2 * time.Second

// Registry holds the methods of a registry that a Cluster calls.
type Registry interface {
	Servers(ctx context.Context) ([]registry.Server, error)
	Listed(ctx context.Context) ([]string, error)
	Died(ctx context.Context) ([]registry.Death, error)
	Revoke(ctx context.Context, v registry.Revocation) (registry.Revoked, error)
	Subscribe(ctx context.Context, c registry.SubscriptionChange) (registry.SubscriptionsChanged, error)
}

// Queue holds the methods of a queue that a Cluster calls.
type Queue interface {
	Client(ctx context.Context, client string) (queue.Client, bool, error)
}

// Options configures a Cluster. Links, Janitors, Memory and Webhooks may be nil.
type Options struct {
	Member   *member.Member
	Links    *peer.Links // nil without a shared store: there are no other servers
	Registry Registry
	Queue    Queue
	// Tokens reports whether clients connect with tokens, which can be revoked.
	Tokens bool
	// Beat is the interval between two beats of a server.
	Beat time.Duration
	// Stats returns the numbers of this server.
	Stats func() api.Stats
	// Janitors returns the janitors that have reported lately.
	Janitors func(ctx context.Context) ([]heartbeat.Janitor, error)
	// Memory returns the memory of each Redis server.
	Memory func(ctx context.Context) ([]health.Memory, error)
	// Webhooks are the events that the backend receives.
	Webhooks api.Webhooks
}

// Parts are what this server has itself.
type Parts struct {
	Sessions *session.Manager
	Hub      *hub.Hub
	// ClientCall returns the client call of an extension with a name, or nil.
	ClientCall func(name string) session.Method
}

// Cluster is the servers that share a store, seen from one of them. It implements api.Cluster. Its
// methods may be called by several goroutines.
type Cluster struct {
	opts   Options
	parts  Parts
	online onlineUsers
}

// New returns a Cluster, and registers the calls that this server answers. Attach follows before
// the links run.
func New(opts Options) *Cluster {
	c := &Cluster{opts: opts}
	if opts.Links != nil {
		c.handleCalls()
	}
	return c
}

// Attach gives the Cluster what this server has.
func (c *Cluster) Attach(p Parts) { c.parts = p }

// handleCalls registers the handlers of the calls from other servers.
func (c *Cluster) handleCalls() {
	handle(c, callCount, func(_ context.Context, channels []string) (any, error) { return c.localSubscribers(channels), nil })
	handle(c, callDisconnect, func(_ context.Context, client string) (any, error) { return c.parts.Sessions.Disconnect(client), nil })
	handle(c, callRevoke, func(ctx context.Context, q revokeCall) (any, error) { return c.revokeHere(ctx, q), nil })
	handle(c, callLists, func(ctx context.Context, q listsCall) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout*3/4) // the answer comes before the caller gives up
		defer cancel()
		return c.listsChanged(ctx, q), nil
	})
	handle(c, callDescribe, func(ctx context.Context, client string) (any, error) { return c.describe(ctx, client) })
	handle(c, callReply, func(_ context.Context, q replyCall) (any, error) {
		return c.parts.Sessions.Reply(q.Client, q.Ref, q.Data), nil
	})
	handle(c, callEnd, func(_ context.Context, q endCall) (any, error) { return c.endHere(q), nil })
	handle(c, callAs, func(ctx context.Context, q asCall) (any, error) { return c.callHere(ctx, q) })
	c.opts.Links.HandleCall(callStats, func(context.Context, json.RawMessage) (any, error) { return c.opts.Stats(), nil })
	c.opts.Links.HandleCall(callUsers, func(context.Context, json.RawMessage) (any, error) { return c.userSummary(), nil })
}

// handle registers the handler of a call whose body is an In.
func handle[In any](c *Cluster, name string, do func(ctx context.Context, in In) (any, error)) {
	c.opts.Links.HandleCall(name, func(ctx context.Context, body json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		return do(ctx, in)
	})
}

// others returns the live servers without this one.
func (c *Cluster) others() (others []registry.Server) {
	if c.opts.Links == nil {
		return nil
	}
	for _, s := range c.opts.Member.Servers() {
		if !c.isSelf(s.ID) {
			others = append(others, s)
		}
	}
	return others
}

func (c *Cluster) isSelf(server string) bool { return server == c.opts.Member.ID() }

// ask makes the same call to each of the servers at once. It returns the answers by id of the
// server; a server that does not answer is missing.
func ask[Out any](ctx context.Context, c *Cluster, servers []registry.Server, call string, in any) map[string]Out {
	answers := make(map[string]Out, len(servers))
	var mu sync.Mutex // guards answers
	var wg sync.WaitGroup
	for _, s := range servers {
		wg.Go(func() {
			var out Out
			if c.opts.Links.Call(ctx, s.ID, call, in, &out) != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers[s.ID] = out
		})
	}
	wg.Wait()
	return answers
}

// call calls another server. It leaves out unchanged if the server is not live, and without a
// shared store, where there is no other server.
func (c *Cluster) call(ctx context.Context, server, name string, in, out any) error {
	if c.opts.Links == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if live, err := c.isLive(ctx, server); err != nil || !live {
		return err
	}
	return c.opts.Links.Call(ctx, server, name, in, out)
}

// isLive reports whether a server is live. It asks the store for a server that is unknown: it may
// have joined since the last beat, and have clients already.
func (c *Cluster) isLive(ctx context.Context, server string) (bool, error) {
	if c.Live(server) {
		return true, nil
	}
	live, err := c.opts.Member.Find(ctx, server)
	if err != nil {
		return false, fmt.Errorf("read the lease of a server: %w", err)
	}
	return live, nil
}

// callHolders makes a call for each server that holds some of the clients, all at once. It returns
// how many failed.
func callHolders(list []registry.Binding, call func(server string, clients []string) error) (failed int) {
	clients := make(map[string][]string) // by server
	for _, b := range list {
		clients[b.Server] = append(clients[b.Server], b.Client)
	}
	var mu sync.Mutex // guards failed
	var calls sync.WaitGroup
	for server, list := range clients {
		calls.Go(func() {
			if call(server, list) == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			failed++
		})
	}
	calls.Wait()
	return failed
}

// ServerNumbers implements api.Cluster.
func (c *Cluster) ServerNumbers(ctx context.Context) []registry.Server {
	return c.opts.Member.Numbers(ctx)
}

// Live implements api.Cluster: it reports whether a server had a lease at the last beat.
func (c *Cluster) Live(server string) bool { return c.opts.Member.IsLive(server) }
