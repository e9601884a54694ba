package api

import (
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

// subscribeRequest is the body of a call that subscribes clients.
type subscribeRequest struct {
	Channels nameList `json:"channels" required:"true"`
	After    *int64   `json:"after"`
}

// unsubscribeRequest is the body of a call that unsubscribes clients.
type unsubscribeRequest struct {
	Channels nameList `json:"channels" required:"true"`
}

// subscribe returns a handler that subscribes the clients of a user, or one client. whose reads
// them from the path.
func (a api) subscribe(whose func(*http.Request) (registry.SubscriptionChange, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body subscribeRequest
		c, err := whose(r)
		if err == nil {
			err = decodeBody(r.Body, &body)
		}
		c.Kind, c.Channels, c.After = registry.Subscribed, body.Channels, -1
		if body.After != nil {
			c.After = *body.After
		}
		if err == nil {
			err = a.checkSubscriptions(c)
		}
		if err == nil && body.After != nil && c.After < 0 {
			err = wire.Errorf(wire.BadRequest, "after: %d is below zero", c.After)
		}
		if err == nil && c.After > 0 && len(c.Channels) > 1 {
			err = wire.Errorf(wire.BadRequest, "after: it is the id of a message of one channel, and there are %d", len(c.Channels))
		}
		a.changeSubscriptions(w, r, c, err)
	}
}

// unsubscribe is subscribe for a call that unsubscribes clients.
func (a api) unsubscribe(whose func(*http.Request) (registry.SubscriptionChange, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body unsubscribeRequest
		c, err := whose(r)
		if err == nil {
			err = decodeBody(r.Body, &body)
		}
		c.Kind, c.Channels, c.After = registry.Unsubscribed, body.Channels, -1
		if err == nil {
			err = a.checkSubscriptions(c)
		}
		a.changeSubscriptions(w, r, c, err)
	}
}

// ofUser returns a change for all clients of the user in the path.
func ofUser(r *http.Request) (registry.SubscriptionChange, error) {
	user, err := PathName(r, "user")
	return registry.SubscriptionChange{User: user}, err
}

// ofClient returns a change for the client in the path.
func ofClient(r *http.Request) (registry.SubscriptionChange, error) {
	client := wire.ClientID(r.PathValue("user"), r.PathValue("client"))
	return registry.SubscriptionChange{User: wire.UserOf(client), Client: client}, wire.CheckClientID(client)
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

// changeSubscriptions makes a change, unless it is refused with an error, and answers.
func (a api) changeSubscriptions(w http.ResponseWriter, r *http.Request, c registry.SubscriptionChange, err error) {
	var changed SubscriptionsChanged
	if err == nil {
		changed, err = a.Cluster.Subscribe(r.Context(), c)
	}
	if errors.Is(err, registry.ErrTooManySubscriptions) {
		err = wire.Errorf(wire.TooLarge, "channels: the backend would have subscribed %s to more than %d; unsubscribe from others first",
			subscriberOf(c), registry.MaxSubscriptions)
	}
	if err != nil {
		a.writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, changed)
}

// subscriberOf names the clients of a change.
func subscriberOf(c registry.SubscriptionChange) string {
	if c.Client == "" {
		return "user " + c.User
	}
	return "client " + c.Client
}
