package backend

import (
	"context"
	"net/http"
	"net/url"
)

// Subscriptions says to which channels SubscribeUser and SubscribeClient subscribe.
type Subscriptions struct {
	Channels []string // at most 64
	// After is the id of a message after which the first subscription of each client begins; then
	// Channels has one name. A pointer to 0 begins with all messages that are kept. Nil means now.
	After *int64
}

// SubscribeUser subscribes all clients of a user, also those that connect later. When it returns,
// the connected ones receive the messages of the channels.
func (c *Client) SubscribeUser(ctx context.Context, user string, s Subscriptions) (SubscriptionsChanged, error) {
	return c.subscribe(ctx, "/v1/users/"+url.PathEscape(user), s)
}

// SubscribeClient is SubscribeUser for one client, by its full id.
func (c *Client) SubscribeClient(ctx context.Context, id string, s Subscriptions) (SubscriptionsChanged, error) {
	return c.subscribe(ctx, clientPath(id, ""), s)
}

// UnsubscribeUser ends subscriptions of all clients of a user, also of those that are away. If the
// access rules let a client subscribe by itself, it may do so again.
func (c *Client) UnsubscribeUser(ctx context.Context, user string, channels ...string) (SubscriptionsChanged, error) {
	return c.unsubscribe(ctx, "/v1/users/"+url.PathEscape(user), channels)
}

// UnsubscribeClient is UnsubscribeUser for one client, by its full id.
func (c *Client) UnsubscribeClient(ctx context.Context, id string, channels ...string) (SubscriptionsChanged, error) {
	return c.unsubscribe(ctx, clientPath(id, ""), channels)
}

func (c *Client) subscribe(ctx context.Context, path string, s Subscriptions) (answer SubscriptionsChanged, err error) {
	body := struct {
		Channels []string `json:"channels"`
		After    *int64   `json:"after,omitempty"`
	}{s.Channels, s.After}
	err = c.Call(ctx, Request{Method: http.MethodPost, Path: path + "/subscribe", Body: body}, &answer)
	return answer, err
}

func (c *Client) unsubscribe(ctx context.Context, path string, channels []string) (answer SubscriptionsChanged, err error) {
	body := struct {
		Channels []string `json:"channels"`
	}{channels}
	err = c.Call(ctx, Request{Method: http.MethodPost, Path: path + "/unsubscribe", Body: body}, &answer)
	return answer, err
}
