package backend

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Self is the instance that answered, and what the key of the call may do.
type Self struct {
	Server    string   `json:"server"`
	Version   string   `json:"version"`
	StartedAt int64    `json:"started_at"` // Unix ms
	Open      bool     `json:"open"`       // no API keys are configured
	Tokens    bool     `json:"tokens"`     // token keys are configured
	Key       Key      `json:"key"`
	Redis     bool     `json:"redis"`    // false: the store is in memory
	Kit       []string `json:"kit"`      // of rooms, holds, boards, accounts, sessions and scenes
	Webhooks  bool     `json:"webhooks"` // the calls about webhooks answer
}

// Key is an API key.
type Key struct {
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"` // of push, read and admin; admin includes the others
}

// Self returns the instance that answers, and the scopes of the key. Every key may call it.
func (c *Client) Self(ctx context.Context) (Self, error) {
	return get[Self](ctx, c, "/v1/self", nil)
}

// ServerStats are the figures of an instance. The counters begin with its start.
type ServerStats struct {
	Server        string   `json:"server"`
	At            int64    `json:"at"`         // when they were read, Unix ms
	StartedAt     int64    `json:"started_at"` // Unix ms
	Connections   int64    `json:"connections"`
	Users         int64    `json:"users"`
	Channels      int64    `json:"channels"`
	Subscriptions int64    `json:"subscriptions"`
	Accepted      int64    `json:"accepted"`  // counter: connections that were accepted
	Closed        int64    `json:"closed"`    // counter: connections that have ended
	Delivered     int64    `json:"delivered"` // counter: messages written to connections
	Pushes        int64    `json:"pushes"`    // counter: targets that have accepted a push
	PushErrors    int64    `json:"push_errors"`
	Append        Duration `json:"append"` // of storing a message
	Drain         Duration `json:"drain"`  // from a possible loss of a hint until the missed messages are read
	RSS           int64    `json:"rss"`    // bytes of memory, 0 if not known

	MaxConnections  int64 `json:"max_connections,omitempty"`
	CertificateEnds int64 `json:"certificate_ends,omitempty"` // of the first certificate of its ports, Unix ms; 0 for none
}

// Duration is how long something took.
type Duration struct {
	Count int64 `json:"count"` // counter
	// P50 and P99 are quantiles of about the last 10 s, in seconds, 0 if nothing happened.
	P50 float64 `json:"p50,omitempty"`
	P99 float64 `json:"p99,omitempty"`
}

// Stats are the figures of all live instances.
type Stats struct {
	Servers []ServerStats `json:"servers"`
	Partial bool          `json:"partial"` // an instance did not answer and is missing
}

// Stats returns the figures of all live instances.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	return get[Stats](ctx, c, "/v1/stats", nil)
}

// QueuePage is a page of the messages that wait for a client, oldest first.
type QueuePage struct {
	Client    string    `json:"client"`
	Messages  []Message `json:"messages"`
	ID        int64     `json:"id"`        // the After of the next page
	More      bool      `json:"more"`      // messages follow the last one
	Recovered bool      `json:"recovered"` // false: messages above After were dropped or lost
	Count     int       `json:"count"`     // of all messages in the queue
}

// Queue reads the queue of a client without acknowledging anything. Only the oldest 4096 messages
// of a queue can be read. The error has the code client.NotFound if the store does not know the
// client.
func (c *Client) Queue(ctx context.Context, clientID string, q HistoryQuery) (page QueuePage, err error) {
	err = c.Call(ctx, Request{
		Method: http.MethodGet, Path: clientPath(clientID, "/queue"), Query: q.values(), Wait: q.Wait,
	}, &page)
	return page, err
}

// Webhooks is the state of the events for the backend.
type Webhooks struct {
	Waiting   int        `json:"waiting"`          // events that are not sent yet
	Dead      int        `json:"dead"`             // dead letters
	Dropped   int64      `json:"dropped"`          // events that were lost because the dead letters were full
	Oldest    int64      `json:"oldest,omitempty"` // when the oldest waiting event was made, Unix ms; 0 if there is none
	Endpoints []Endpoint `json:"endpoints"`
	Attempts  int        `json:"attempts"`           // failed attempts since the last successful one
	RetryAt   int64      `json:"retry_at,omitempty"` // the next attempt after a failed one, Unix ms; 0 if none has failed
	Last      *Attempt   `json:"last,omitempty"`     // nil if there was none lately
}

// Attempt is an attempt to deliver events.
type Attempt struct {
	At     int64  `json:"at"`               // Unix ms
	Status int    `json:"status,omitempty"` // of the answer; 200 for every 2xx, 0 if there was none
	Error  string `json:"error,omitempty"`  // why there was no answer
}

// Endpoint is a URL that receives events.
type Endpoint struct {
	URL    string   `json:"url"` // without user and query
	Events []string `json:"events"`
}

// Webhooks returns the state of the events. The error has the code client.NotFound if the broker
// has no endpoint.
func (c *Client) Webhooks(ctx context.Context) (Webhooks, error) {
	return get[Webhooks](ctx, c, "/v1/webhooks", nil)
}

// DeadLetter is an event that could not be delivered.
type DeadLetter struct {
	ID     string          `json:"id,omitempty"`
	Reason string          `json:"reason"` // expired, refused, gone or full
	At     int64           `json:"at"`     // when it was given up, Unix ms
	Event  json.RawMessage `json:"event"`
}

// DeadLetterPage is a page of dead letters. It may have fewer than the limit although more follow.
type DeadLetterPage struct {
	Letters []DeadLetter `json:"letters"`
	Cursor  string       `json:"cursor,omitempty"` // of the next page, "" for the last one
}

// DeadLetters returns events that could not be delivered.
func (c *Client) DeadLetters(ctx context.Context, p PageQuery) (DeadLetterPage, error) {
	return get[DeadLetterPage](ctx, c, "/v1/webhooks/dead", p.values())
}

// RetryDeadLetters queues all dead letters for delivery again, and returns their number.
func (c *Client) RetryDeadLetters(ctx context.Context) (int, error) {
	var answer struct {
		Retried int `json:"retried"`
	}
	err := c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/webhooks/dead/retry"}, &answer)
	return answer.Retried, err
}

// RetryDeadLetter queues the dead letter of one event for delivery again. The error has the code
// client.NotFound if there is none.
func (c *Client) RetryDeadLetter(ctx context.Context, event string) error {
	return c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/webhooks/dead/" + url.PathEscape(event) + "/retry"}, nil)
}

// DropDeadLetter removes the dead letter of one event, which is then never delivered. The error has
// the code client.NotFound if there is none.
func (c *Client) DropDeadLetter(ctx context.Context, event string) error {
	return c.Call(ctx, Request{Method: http.MethodDelete, Path: "/v1/webhooks/dead/" + url.PathEscape(event)}, nil)
}

// HealthReport says what needs the attention of an operator.
type HealthReport struct {
	Status   string    `json:"status"`   // healthy, or the most urgent level of the findings
	At       int64     `json:"at"`       // when it was found, Unix ms
	Findings []Finding `json:"findings"` // the most urgent first
}

// Finding is something that needs attention.
type Finding struct {
	Level   string `json:"level"`             // problem or warning
	Code    string `json:"code"`              // one of docs/operations.md
	Subject string `json:"subject,omitempty"` // the server, janitor, Redis or URL that it is about
	At      int64  `json:"at,omitempty"`      // when it happened, or will happen, Unix ms; 0 if not known
	Message string `json:"message"`           // what is wrong
	Remedy  string `json:"remedy"`            // what to do
}

// Health returns what needs the attention of an operator, on all instances and in Redis.
func (c *Client) Health(ctx context.Context) (HealthReport, error) {
	return get[HealthReport](ctx, c, "/v1/health", nil)
}

// CheckQuery asks what a client may do. The client has the Token, or is one of the User, or has no
// user.
type CheckQuery struct {
	Token   string   `json:"token,omitempty"`
	User    string   `json:"user,omitempty"`
	Channel string   `json:"channel"`
	Fields  []string `json:"fields,omitempty"` // up to 64 fields that it may want to write
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

// Check explains what a client may do on a channel. A bad token is no error, see Rights.Error.
func (c *Client) Check(ctx context.Context, q CheckQuery) (r Rights, err error) {
	err = c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/check", Body: q}, &r)
	return r, err
}
