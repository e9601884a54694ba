package backend

import (
	"context"
	"net/http"
)

// Queue reads the queue of a client without acknowledging anything. Only the oldest 4096 messages
// of a queue can be read. The error has the code client.NotFound if the store does not know the
// client.
func (c *Client) Queue(ctx context.Context, clientID string, q HistoryQuery) (page QueuePage, err error) {
	err = c.Call(ctx, Request{
		Method: http.MethodGet, Path: clientPath(clientID, "/queue"), Query: q.values(), Wait: q.Wait,
	}, &page)
	return page, err
}

// Rights are what a client may do on a channel, and why.
type Rights struct {
	User    string       `json:"user,omitempty"`
	Client  string       `json:"client,omitempty"`  // if the token names one
	Issued  int64        `json:"issued,omitempty"`  // of the token, Unix ms; 0 if it does not say it
	Expires int64        `json:"expires,omitempty"` // end of the token, Unix ms; 0 for none
	Connect Allowed      `json:"connect"`
	Channel string       `json:"channel"`
	Rule    string       `json:"rule,omitempty"` // of the namespace, "" if none fits
	Limits  string       `json:"limits,omitempty"`
	Rights  []Right      `json:"rights"`
	Fields  []FieldRight `json:"fields,omitempty"`
	Error   string       `json:"error,omitempty"` // what is wrong with the token; everything else is empty then
}

// Allowed is a decision and its reason.
type Allowed struct {
	Allowed bool   `json:"allowed"`
	Why     string `json:"why"`
}

// Right is one right on a channel.
type Right struct {
	Right string `json:"right"` // subscribe, publish, presence, history, state or durable
	Allowed
}

// FieldRight is the right to write a field.
type FieldRight struct {
	Field string `json:"field"`
	Allowed
	Limits string `json:"limits,omitempty"`
}
