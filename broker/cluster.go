package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"switchboard/broker/api"
	"switchboard/broker/peer"
	"switchboard/internal/wire"
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

// replyCall is the body of callReply.
type replyCall struct {
	Client string          `json:"client"`
	Ref    int64           `json:"ref"`
	Data   json.RawMessage `json:"data"`
}

// endCall is the body of callEnd.
type endCall struct {
	Client  string         `json:"client"`
	Channel string         `json:"channel"`
	Code    wire.ErrorCode `json:"code"` // Code and Message are the reason for the client
	Message string         `json:"message"`
}

// handleCalls registers the handlers of the calls from other servers.
func (b *Broker) handleCalls(links *peer.Links) {
	links.HandleCall(callCount, func(_ context.Context, body json.RawMessage) (any, error) {
		var channels []string
		err := json.Unmarshal(body, &channels)
		return b.localSubscribers(channels), err
	})
	links.HandleCall(callDisconnect, func(_ context.Context, body json.RawMessage) (any, error) {
		var client string
		err := json.Unmarshal(body, &client)
		return err == nil && b.sessions.Disconnect(client), err
	})
	links.HandleCall(callRevoke, b.handleRevoke)
	links.HandleCall(callLists, b.handleLists)
	links.HandleCall(callDescribe, b.describeCall)
	links.HandleCall(callStats, b.statsCall)
	links.HandleCall(callUsers, b.usersCall)
	links.HandleCall(callReply, func(_ context.Context, body json.RawMessage) (any, error) {
		var r replyCall
		err := json.Unmarshal(body, &r)
		return err == nil && b.sessions.Reply(r.Client, r.Ref, r.Data), err
	})
	links.HandleCall(callEnd, func(_ context.Context, body json.RawMessage) (any, error) {
		var e endCall
		err := json.Unmarshal(body, &e)
		return err == nil && b.sessions.Unsubscribe(e.Client, e.Channel, &wire.Error{Code: e.Code, Message: e.Message}), err
	})
	links.HandleCall(callAs, func(ctx context.Context, body json.RawMessage) (any, error) {
		var q asCall
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, err
		}
		return b.callAs(ctx, q)
	})
}

// describeCall handles callDescribe. The result is nil if the client is not connected here.
func (b *Broker) describeCall(ctx context.Context, body json.RawMessage) (any, error) {
	var client string
	if err := json.Unmarshal(body, &client); err != nil {
		return nil, err
	}
	return b.describeClient(ctx, client)
}

// describeClient describes the connection of a client on this server. It is nil if there is none.
func (b *Broker) describeClient(ctx context.Context, client string) (*api.Connection, error) {
	d, known, err := b.sessions.Describe(ctx, client)
	if err != nil || !known {
		return nil, err
	}
	return &api.Connection{Address: d.Address, Expires: d.Expires, Channels: d.Channels}, nil
}

// Connection implements api.Cluster: it describes the connection of a client on the given server.
func (b *Broker) Connection(ctx context.Context, server, client string) (c *api.Connection, err error) {
	if server == b.ID() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return b.describeClient(ctx, client)
	}
	err = b.call(ctx, server, callDescribe, client, &c)
	return c, err
}

// localSubscribers returns the number of subscribers of each channel on this server.
func (b *Broker) localSubscribers(channels []string) []int {
	counts := make([]int, len(channels))
	for i, c := range channels {
		counts[i] = b.hub.SubscriberCount(c)
	}
	return counts
}

// Subscribers implements api.Cluster: it adds the numbers of all live servers. partial means that a
// server did not answer.
func (b *Broker) Subscribers(ctx context.Context, channels []string) (total []int, partial bool) {
	total = b.localSubscribers(channels)
	if len(channels) == 0 {
		return total, false
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	servers := b.otherServers()
	answers := askServers[[]int](ctx, b, servers, callCount, channels)
	for _, s := range servers {
		counts := answers[s.ID]
		if len(counts) != len(channels) {
			partial = true
			continue
		}
		for i, n := range counts {
			total[i] += n
		}
	}
	return total, partial
}

// otherServers returns the live servers without this one.
func (b *Broker) otherServers() (others []registry.Server) {
	if b.links == nil {
		return nil
	}
	for _, s := range b.Servers() {
		if s.ID != b.ID() {
			others = append(others, s)
		}
	}
	return others
}

// askServers makes the same call to each of the servers at once. It returns the answers by id of
// the server; a server that does not answer is missing.
func askServers[Out any](ctx context.Context, b *Broker, servers []registry.Server, call string, in any) map[string]Out {
	answers := make(map[string]Out, len(servers))
	var mu sync.Mutex // guards answers
	var wg sync.WaitGroup
	for _, s := range servers {
		wg.Go(func() {
			var out Out
			if b.links.Call(ctx, s.ID, call, in, &out) != nil {
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

// Disconnect implements api.Cluster: it closes a client's connection on the given server.
func (b *Broker) Disconnect(ctx context.Context, server, client string) (closed bool, err error) {
	if server == b.ID() {
		return b.sessions.Disconnect(client), nil
	}
	err = b.call(ctx, server, callDisconnect, client, &closed)
	return closed, err
}

// Reply implements api.Cluster: it delivers a reply to a client on the given server.
func (b *Broker) Reply(ctx context.Context, server, client string, ref int64, data json.RawMessage) (found bool, err error) {
	if server == b.ID() {
		return b.sessions.Reply(client, ref, data), nil
	}
	err = b.call(ctx, server, callReply, replyCall{client, ref, data}, &found)
	return found, err
}

// endSubscription ends a client's subscription on the given server, and tells the client why.
func (b *Broker) endSubscription(ctx context.Context, server string, e endCall) error {
	if server == b.ID() {
		b.sessions.Unsubscribe(e.Client, e.Channel, &wire.Error{Code: e.Code, Message: e.Message})
		return nil
	}
	var found bool
	return b.call(ctx, server, callEnd, e, &found)
}

// call calls another server. It leaves out unchanged if the server is not live, and without a
// shared store, where there is no other server.
func (b *Broker) call(ctx context.Context, server, name string, in, out any) error {
	if b.links == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if live, err := b.isLive(ctx, server); err != nil || !live {
		return err
	}
	return b.links.Call(ctx, server, name, in, out)
}

// isLive reports whether a server is live. It asks the store for a server that is unknown: it may
// have joined since the last beat, and have clients already.
func (b *Broker) isLive(ctx context.Context, server string) (bool, error) {
	if b.Live(server) {
		return true, nil
	}
	live, err := b.member.Find(ctx, server)
	if err != nil {
		return false, fmt.Errorf("read the lease of a server: %w", err)
	}
	return live, nil
}
