package broker

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"switchboard/broker/peer"
)

// Calls between instances.
const (
	callCount      = "count"
	callDisconnect = "disconnect"
	callReply      = "reply"
)

// callTimeout bounds a call to another instance that a backend waits for.
const callTimeout = 2 * time.Second

type replyCall struct {
	Client string          `json:"client"`
	Ref    int64           `json:"ref"`
	Data   json.RawMessage `json:"data"`
}

// handleCalls serves what other instances ask of this one.
func (b *Broker) handleCalls() {
	b.peers.HandleCall(callCount, func(_ context.Context, body json.RawMessage) (any, error) {
		var channels []string
		err := json.Unmarshal(body, &channels)
		return b.localSubscribers(channels), err
	})
	b.peers.HandleCall(callDisconnect, func(_ context.Context, body json.RawMessage) (any, error) {
		var client string
		err := json.Unmarshal(body, &client)
		return err == nil && b.sessions.Disconnect(client), err
	})
	b.peers.HandleCall(callReply, func(_ context.Context, body json.RawMessage) (any, error) {
		var r replyCall
		err := json.Unmarshal(body, &r)
		return err == nil && b.sessions.Reply(r.Client, r.Ref, r.Data), err
	})
}

// hint acts on a hint, from here or from another instance.
func (b *Broker) hint(h peer.Hint) {
	switch h.Kind {
	case peer.Channel:
		if c := b.hub.Channel(h.Name); c != nil {
			c.Hint(h.ID, h.Prev, h.Data)
		}
	case peer.Client:
		b.sessions.Hint(h.Name, h.ID, h.Prev, h.Data)
	case peer.Supersede:
		b.sessions.Supersede(h.Name, h.ID)
	case peer.Presence:
		b.presence.Hint(h)
	case peer.User:
		b.presence.UserChanged(h.Name)
	}
}

// tell sends a hint to another instance, if there can be any.
func (b *Broker) tell(server string, h peer.Hint) {
	if b.peers != nil {
		b.peers.Send(server, h)
	}
}

// userChanged tells whoever follows the user that a client of his has come or gone.
func (b *Broker) userChanged(user string) {
	b.presence.UserChanged(user)
	for id, s := range *b.live.Load() {
		if s.Watching > 0 && id != b.serverID() {
			b.tell(id, peer.Hint{Kind: peer.User, Name: user})
		}
	}
}

func (b *Broker) localSubscribers(channels []string) []int {
	counts := make([]int, len(channels))
	for i, c := range channels {
		counts[i] = b.hub.SubscriberCount(c)
	}
	return counts
}

// Subscribers asks every live server (api.Cluster).
func (b *Broker) Subscribers(ctx context.Context, channels []string) (total []int, partial bool) {
	total = b.localSubscribers(channels)
	if b.peers == nil || len(channels) == 0 {
		return total, false
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var mu sync.Mutex // guards total and partial
	var wg sync.WaitGroup
	for _, s := range b.Servers() {
		if s.ID == b.serverID() {
			continue
		}
		wg.Go(func() {
			var counts []int
			err := b.peers.Call(ctx, s.ID, callCount, channels, &counts)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(counts) != len(channels) {
				partial = true
				return
			}
			for i, n := range counts {
				total[i] += n
			}
		})
	}
	wg.Wait()
	return total, partial
}

// Disconnect closes a client's connection wherever it is (api.Cluster).
func (b *Broker) Disconnect(ctx context.Context, server, client string) (closed bool, err error) {
	if server == b.serverID() {
		return b.sessions.Disconnect(client), nil
	}
	err = b.call(ctx, server, callDisconnect, client, &closed)
	return closed, err
}

// Reply hands an answer to a client wherever it is (api.Cluster).
func (b *Broker) Reply(ctx context.Context, server, client string, ref int64, data json.RawMessage) (found bool, err error) {
	if server == b.serverID() {
		return b.sessions.Reply(client, ref, data), nil
	}
	err = b.call(ctx, server, callReply, replyCall{client, ref, data}, &found)
	return found, err
}

func (b *Broker) call(ctx context.Context, server, name string, in, out any) error {
	if b.peers == nil {
		return nil // alone: whoever is named is gone
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return b.peers.Call(ctx, server, name, in, out)
}
