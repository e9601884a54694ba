package cluster

import (
	"context"
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
func (c *Cluster) Subscribe(ctx context.Context, change registry.SubscriptionChange) (api.SubscriptionsChanged, error) {
	stored, err := c.opts.Registry.Subscribe(ctx, change)
	if err != nil {
		return api.SubscriptionsChanged{}, err
	}
	if change.User == "" {
		client, _, err := c.opts.Queue.Client(ctx, change.Client)
		if err != nil {
			return api.SubscriptionsChanged{}, err
		}
		if client.Server != "" {
			stored.Clients = []registry.Binding{{Client: change.Client, Server: client.Server}}
		}
	}
	changed := api.SubscriptionsChanged{Until: stored.Until, Refused: []api.RefusedSubscription{}}
	var mu sync.Mutex // guards changed
	changed.Pending = callHolders(stored.Clients, func(server string, clients []string) error {
		answer, err := c.applyLists(ctx, server, listsCall{clients})
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

// applyLists has a server apply the lists of clients. A server that is not live has no clients.
func (c *Cluster) applyLists(ctx context.Context, server string, q listsCall) (listsAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if c.isSelf(server) {
		return c.listsChanged(ctx, q), nil
	}
	var answer *listsAnswer
	err := c.call(ctx, server, callLists, q, &answer)
	if answer == nil {
		answer = &listsAnswer{Complete: true}
	}
	return *answer, err
}

// listsChanged has the sessions of this server apply their lists.
func (c *Cluster) listsChanged(ctx context.Context, q listsCall) (a listsAnswer) {
	a.Applied, a.Refused, a.Complete = c.parts.Sessions.ListsChanged(ctx, q.Clients)
	return a
}
