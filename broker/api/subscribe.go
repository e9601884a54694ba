package api

import (
	"context"
	"errors"
	"net/http"

	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// SubscriptionsChanged is the answer to a call that subscribes or unsubscribes clients.
type SubscriptionsChanged struct {
	Clients int `json:"clients"` // connected clients that have applied it
	// Refused are the channels to which connected clients could not be subscribed.
	Refused []RefusedSubscription `json:"refused"`
	Pending int                   `json:"pending,omitempty"` // servers
	Until   int64                 `json:"until"`             // when the store forgets it, Unix ms
}

// RefusedSubscription is a channel to which a client could not be subscribed, and why.
type RefusedSubscription struct {
	Client  string         `json:"client"`
	Channel string         `json:"channel"`
	Code    wire.ErrorCode `json:"code"`
	Message string         `json:"message"`
}

// subscribe subscribes the clients of a user, or one client.
func (a api) subscribe(r *http.Request) (any, error) {
	var body struct {
		Channels nameList `json:"channels" required:"true"`
		After    *int64   `json:"after"`
	}
	c, err := subscriptionChange(r, registry.Subscribed, &body)
	if err != nil {
		return nil, err
	}
	if c.Channels = body.Channels; body.After != nil {
		c.After = *body.After
	}
	if err := a.checkSubscriptions(c); err != nil {
		return nil, err
	}
	if body.After != nil && c.After < 0 {
		return nil, wire.Errorf(wire.BadRequest, "after: %d is below zero", c.After)
	}
	if c.After > 0 && len(c.Channels) > 1 {
		return nil, wire.Errorf(wire.BadRequest, "after: it is the id of a message of one channel, and there are %d", len(c.Channels))
	}
	return a.changeSubscriptions(r.Context(), c)
}

// unsubscribe unsubscribes the clients of a user, or one client.
func (a api) unsubscribe(r *http.Request) (any, error) {
	var body struct {
		Channels nameList `json:"channels" required:"true"`
	}
	c, err := subscriptionChange(r, registry.Unsubscribed, &body)
	if err != nil {
		return nil, err
	}
	c.Channels = body.Channels
	if err := a.checkSubscriptions(c); err != nil {
		return nil, err
	}
	return a.changeSubscriptions(r.Context(), c)
}

// subscriptionChange returns a change for the clients in the path, and decodes the body.
func subscriptionChange(r *http.Request, kind registry.SubscriptionKind, body any) (c registry.SubscriptionChange, err error) {
	c.Kind, c.After = kind, -1
	if c.User, c.Client, err = pathOwner(r); err != nil {
		return c, err
	}
	return c, decodeBody(r.Body, body)
}

// checkSubscriptions checks the channels of a change. A channel that no namespace covers can only
// be unsubscribed: the rules may have changed.
func (a api) checkSubscriptions(c registry.SubscriptionChange) error {
	switch n := len(c.Channels); {
	case n == 0:
		return wire.Errorf(wire.BadRequest, "channels: the list is empty")
	case n > registry.MaxSubscriptions:
		return wire.Errorf(wire.TooLarge, "channels: %d names, at most %d are allowed", n, registry.MaxSubscriptions)
	}
	for _, channel := range c.Channels {
		if err := wire.CheckName("channel", channel); err != nil {
			return err
		}
		if wire.IsSystem(channel) {
			return wire.Errorf(wire.Forbidden, "channel %s: it is a system channel", channel)
		}
		if c.Kind == registry.Subscribed {
			if err := a.checkAllowed(namespace.Subscribe, channel); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeSubscriptions makes a change.
func (a api) changeSubscriptions(ctx context.Context, c registry.SubscriptionChange) (any, error) {
	changed, err := a.Cluster.Subscribe(ctx, c)
	if errors.Is(err, registry.ErrTooManySubscriptions) {
		err = wire.Errorf(wire.TooLarge, "channels: the backend would have subscribed %s to more than %d; unsubscribe from others first",
			subscriberOf(c), registry.MaxSubscriptions)
	}
	return changed, err
}

// subscriberOf names the clients of a change.
func subscriberOf(c registry.SubscriptionChange) string {
	if c.Client == "" {
		return "user " + c.User
	}
	return "client " + c.Client
}
