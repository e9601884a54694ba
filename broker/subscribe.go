package broker

import (
	"context"
	"encoding/json"
	"sync"

	"switchboard/broker/api"
	"switchboard/broker/session"
	"switchboard/registry"
)

// listsCall is the body of callLists. The answer is a listsAnswer.
type listsCall struct {
	Clients []string `json:"clients"`
}

// listsAnswer says how many connections of a server have applied their lists.
type listsAnswer struct {
	Applied  int                  `json:"applied"`
	Refused  []session.RefusedSub `json:"refused,omitempty"`
	Complete bool                 `json:"complete"` // none is still at it
}

// Subscribe implements api.Cluster: it stores the change, and then calls each server that has a
// client that it concerns. A server that the call does not reach reads the store after its next
// beat.
func (b *Broker) Subscribe(ctx context.Context, c registry.SubscriptionChange) (api.SubscriptionsChanged, error) {
	stored, err := b.opts.Store.Registry.Subscribe(ctx, c)
	if err != nil {
		return api.SubscriptionsChanged{}, err
	}
	if c.User == "" {
		client, _, err := b.opts.Store.Queue.Client(ctx, c.Client)
		if err != nil {
			return api.SubscriptionsChanged{}, err
		}
		if client.Server != "" {
			stored.Clients = []registry.Binding{{Client: c.Client, Server: client.Server}}
		}
	}
	changed := api.SubscriptionsChanged{Until: stored.Until, Refused: []api.RefusedSubscription{}}
	var mu sync.Mutex // guards changed
	changed.Pending = callHolders(stored.Clients, func(server string, clients []string) error {
		answer, err := b.applyLists(ctx, server, listsCall{clients})
		mu.Lock()
		defer mu.Unlock()
		changed.Clients += answer.Applied
		for _, r := range answer.Refused {
			changed.Refused = append(changed.Refused, api.RefusedSubscription(r))
		}
		if err == nil && !answer.Complete {
			err = context.DeadlineExceeded
		}
		return err
	})
	return changed, nil
}

// callHolders makes a call for each server that holds some of the clients, all at once. It returns
// how many failed.
func callHolders(list []registry.Binding, call func(server string, clients []string) error) (failed int) {
	clients := make(map[string][]string) // by server
	for _, c := range list {
		clients[c.Server] = append(clients[c.Server], c.Client)
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

// applyLists has a server apply the lists of clients. A server that is not live has no clients.
func (b *Broker) applyLists(ctx context.Context, server string, q listsCall) (listsAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if server == b.ID() {
		return b.listsChanged(ctx, q), nil
	}
	var answer *listsAnswer
	err := b.call(ctx, server, callLists, q, &answer)
	if answer == nil {
		answer = &listsAnswer{Complete: true}
	}
	return *answer, err
}

// listsChanged has the sessions of this server apply their lists.
func (b *Broker) listsChanged(ctx context.Context, q listsCall) (a listsAnswer) {
	a.Applied, a.Refused, a.Complete = b.sessions.ListsChanged(ctx, q.Clients)
	return a
}

// handleLists handles callLists. It answers before the caller gives up.
func (b *Broker) handleLists(ctx context.Context, body json.RawMessage) (any, error) {
	var q listsCall
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout*3/4)
	defer cancel()
	return b.listsChanged(ctx, q), nil
}
