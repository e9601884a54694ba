package backend

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Push is a message to one kind of target: a channel, channels, a user, users, a client, clients,
// or all clients. A push to channels may change fields of their state instead of, or in addition
// to, the Data.
type Push struct {
	Channel  string
	Channels []string
	User     string // all devices of a user
	Users    []string
	Client   string // one device, by its full id such as alice/phone
	Clients  []string
	All      bool

	Data any // encoded as JSON; nil means none. A json.RawMessage is sent as it is

	// Key is the idempotency key: within 10 minutes, the same Key to the same target is stored once.
	// Only a push with a Key is repeated after an answer was lost, or after a 503. Zero means none.
	Key         string
	Durable     bool          // accepted only when a replica of Redis has the message
	TTL         time.Duration // queues are kept for at least this time; of a change, the lease of the fields
	NotifyAfter time.Duration // the backend receives an event if no device has acknowledged the message by then
	First       bool          // the first acknowledgement withdraws the message from the user's other devices
	// Exclude is the id of a client that does not receive the message, for channels, users and All.
	// Zero means none.
	Exclude string

	// The change of fields. All changes of a push apply, or none does.
	Set    map[string]any    // new values, encoded as JSON
	Del    []string          // fields to remove
	Add    map[string]any    // by field: a whole number, or an Addition
	Touch  []string          // fields that get a new lease
	If     map[string]any    // by field: the id that it must have, 0 for an absent field, true for any value
	Of     map[string]string // parents of fields that are set
	Disown bool              // removes all owners of the fields that are set, added or touched
}

// Addition adds to a number within bounds.
type Addition struct {
	By  int64  `json:"by"`
	Min *int64 `json:"min,omitempty"`
	Max *int64 `json:"max,omitempty"`
}

// MarshalJSON implements json.Marshaler. It returns the body of POST /v1/push.
func (p Push) MarshalJSON() ([]byte, error) {
	body := struct {
		Channel     string            `json:"channel,omitempty"`
		Channels    []string          `json:"channels,omitzero"`
		User        string            `json:"user,omitempty"`
		Users       []string          `json:"users,omitzero"`
		Client      string            `json:"client,omitempty"`
		Clients     []string          `json:"clients,omitzero"`
		All         bool              `json:"all,omitempty"`
		Data        any               `json:"data,omitempty"`
		Key         string            `json:"key,omitempty"`
		Durable     bool              `json:"durable,omitempty"`
		TTL         float64           `json:"ttl,omitempty"`
		NotifyAfter float64           `json:"notify_after,omitempty"`
		First       bool              `json:"first,omitempty"`
		Exclude     string            `json:"exclude,omitempty"`
		Set         map[string]any    `json:"set,omitempty"`
		Del         []string          `json:"del,omitempty"`
		Add         map[string]any    `json:"add,omitempty"`
		Touch       []string          `json:"touch,omitempty"`
		If          map[string]any    `json:"if,omitempty"`
		Of          map[string]string `json:"of,omitempty"`
		Own         *bool             `json:"own,omitempty"`
	}{
		p.Channel, p.Channels, p.User, p.Users, p.Client, p.Clients, p.All,
		p.Data, p.Key, p.Durable, p.TTL.Seconds(), p.NotifyAfter.Seconds(), p.First, p.Exclude,
		p.Set, p.Del, p.Add, p.Touch, p.If, p.Of, nil,
	}
	if p.Disown {
		body.Own = new(bool)
	}
	return json.Marshal(body)
}

// Result is the result of a push to one target. Of the targets, one is set.
type Result struct {
	Channel string `json:"channel,omitempty"`
	User    string `json:"user,omitempty"`
	Client  string `json:"client,omitempty"`
	All     bool   `json:"all,omitempty"`

	ID        int64            `json:"id,omitempty"`        // of the message; 0 for a user
	Servers   *int             `json:"servers,omitempty"`   // of a channel and all: live servers with subscribers
	Online    *bool            `json:"online,omitempty"`    // of a client: it is connected
	Clients   []Copy           `json:"clients,omitzero"`    // of a user: the messages to the devices
	Duplicate bool             `json:"duplicate,omitempty"` // the Key was known, so nothing was stored
	Fields    map[string]int64 `json:"fields,omitempty"`    // the results of Add
	Error     *Error           `json:"error,omitempty"`     // this target has not accepted the push
}

// Copy is the message to one device of a user.
type Copy struct {
	Client    string `json:"client"`
	ID        int64  `json:"id"`
	Online    bool   `json:"online"`
	Duplicate bool   `json:"duplicate,omitempty"`
}

// Results are the results of a push, one for each target, in the order of the targets.
type Results []Result

// Err returns the error of the first target that has not accepted the push, or nil.
func (r Results) Err() error {
	for i := range r {
		if r[i].Error != nil {
			return r[i].Error
		}
	}
	return nil
}

// Push pushes a message. The error is nil if at least one target has accepted it: Results.Err shows
// the others. A push with Key is repeated after a 503, with the same Key.
//
// If no replica confirms a Durable change of fields in time, the error has the code
// client.Unavailable, and the Results are valid.
func (c *Client) Push(ctx context.Context, p Push) (Results, error) {
	var answer struct {
		Results Results `json:"results"`
	}
	err := c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/push", Body: p}, &answer)
	if stored, ok := errors.AsType[*storedError](err); ok {
		return stored.results, stored.refusal
	}
	return answer.Results, err
}

// Outcome is the outcome of one push of a batch.
type Outcome struct {
	Results Results `json:"results,omitempty"`
	Error   *Error  `json:"error,omitempty"` // no target has accepted the push
}

// Err returns the error of the push, or that of its first target that has not accepted it, or nil.
func (o Outcome) Err() error {
	if o.Error != nil {
		return o.Error
	}
	return o.Results.Err()
}

// Batch pushes up to 1000 messages. Pushes to one target keep their order, and a refused one stops
// no other. A batch whose messages all have a Key is repeated after a 503.
func (c *Client) Batch(ctx context.Context, messages []Push) ([]Outcome, error) {
	var answer struct {
		Results []Outcome `json:"results"`
	}
	body := map[string]any{"messages": messages}
	err := c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/push/batch", Body: body}, &answer)
	return answer.Results, err
}

// Notify tells the brokers that a backend has written messages to the queues of channels and
// clients in Redis itself.
func (c *Client) Notify(ctx context.Context, channels, clients []string) error {
	body := map[string][]string{}
	if len(channels) > 0 {
		body["channels"] = channels
	}
	if len(clients) > 0 {
		body["clients"] = clients
	}
	return c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/notify", Body: body}, nil)
}

// Reply answers a request of a client. data is encoded as JSON. The error has the code
// client.NotFound if the client is not connected.
func (c *Client) Reply(ctx context.Context, clientID string, ref int64, data any) error {
	body := struct {
		Client string `json:"client"`
		Ref    int64  `json:"ref"`
		Data   any    `json:"data"`
	}{clientID, ref, data}
	return c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/reply", Body: body}, nil)
}
