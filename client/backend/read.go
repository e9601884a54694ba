package backend

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"switchboard/client"
)

// PageQuery selects a page of a list.
type PageQuery struct {
	Prefix string // only names that begin with it; other lists than Channels and State refuse it
	Cursor string // that of the page before; "" for the first page
	Limit  int    // 1 to 1000. Zero means 100
}

func (p PageQuery) values() url.Values {
	return values("prefix", p.Prefix, "cursor", p.Cursor, "limit", p.Limit)
}

// values returns a query string of names and values, without those that are zero.
func values(pairs ...any) url.Values { return merge(url.Values{}, pairs...) }

// merge adds names and values to a query string.
func merge(v url.Values, pairs ...any) url.Values {
	for i := 0; i < len(pairs); i += 2 {
		text := ""
		switch value := pairs[i+1].(type) {
		case string:
			text = value
		case bool:
			text = map[bool]string{true: "1"}[value]
		case int:
			text = map[bool]string{true: strconv.Itoa(value)}[value != 0]
		case int64:
			text = map[bool]string{true: strconv.FormatInt(value, 10)}[value != 0]
		}
		if text != "" {
			v.Set(pairs[i].(string), text)
		}
	}
	return v
}

// path returns a path with names in the place of {}.
func path(pattern string, names ...string) string {
	for _, name := range names {
		pattern = strings.Replace(pattern, "{}", url.PathEscape(name), 1)
	}
	return pattern
}

// optional returns the body for an argument that may be absent.
func optional[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func get[T any](ctx context.Context, c *Client, path string, query url.Values) (answer T, err error) {
	err = c.Call(ctx, Request{Method: http.MethodGet, Path: path, Query: query}, &answer)
	return answer, err
}

func channelPath(channel, rest string) string {
	return "/v1/channels/" + url.PathEscape(channel) + rest
}

// ChannelCount is a channel with its subscribers.
type ChannelCount struct {
	Channel     string `json:"channel"`
	Subscribers int    `json:"subscribers"`
}

// ChannelPage is a page of channels.
type ChannelPage struct {
	Channels []ChannelCount `json:"channels"`
	Cursor   string         `json:"cursor,omitempty"`  // of the next page, "" for the last one
	Partial  bool           `json:"partial,omitempty"` // an instance did not answer: the numbers are lower bounds
}

// Channels returns channels with subscribers, in the order of their names.
func (c *Client) Channels(ctx context.Context, p PageQuery) (ChannelPage, error) {
	return get[ChannelPage](ctx, c, "/v1/channels", p.values())
}

// Channel is the status of a channel.
type Channel struct {
	Channel     string `json:"channel"`
	Servers     int    `json:"servers"` // live servers with subscribers
	Subscribers int    `json:"subscribers"`
	ID          int64  `json:"id"`       // of the last message
	Messages    int    `json:"messages"` // in the history
	Partial     bool   `json:"partial,omitempty"`
}

// Channel returns the status of a channel. A channel that nothing has used has zeros.
func (c *Client) Channel(ctx context.Context, channel string) (Channel, error) {
	return get[Channel](ctx, c, channelPath(channel, ""), nil)
}

// HistoryQuery selects messages of a channel or of a client's queue.
type HistoryQuery struct {
	After int64 // only messages above this id
	Limit int   // 1 to 1000. Zero means 100
	// Wait is how long the answer waits for a message if there is none, up to 30 s in whole seconds.
	// Zero means that it does not wait.
	Wait time.Duration
}

func (q HistoryQuery) values() url.Values {
	return values("after", q.After, "limit", q.Limit, "wait", int64(q.Wait/time.Second))
}

// Message is a stored message of a channel or of a queue. A message of a channel that changed
// fields has the changes.
type Message = client.Stored

// HistoryPage is a page of messages, oldest first.
type HistoryPage struct {
	Channel  string    `json:"channel"`
	Messages []Message `json:"messages"`
	// ID is the position of the page: the After of the next one. It can be lower than After, if the
	// store has lost its last writes. 0 if the broker does not say it.
	ID   int64 `json:"id,omitempty"`
	More bool  `json:"more"` // messages follow the last one
	// Recovered means that no message between After and the first one is missing.
	Recovered bool `json:"recovered"`
}

// History reads messages of a channel.
func (c *Client) History(ctx context.Context, channel string, q HistoryQuery) (page HistoryPage, err error) {
	err = c.Call(ctx, Request{
		Method: http.MethodGet, Path: channelPath(channel, "/history"), Query: q.values(), Wait: q.Wait,
	}, &page)
	return page, err
}

// Member is a client in a channel.
type Member struct {
	Client string          `json:"client"`
	User   string          `json:"user,omitempty"`
	Info   json.RawMessage `json:"info,omitempty"`
	Since  int64           `json:"since,omitempty"` // Unix ms
	Here   json.RawMessage `json:"here,omitempty"`  // the value that it shows
}

// PresencePage is a page of the clients in a channel.
type PresencePage struct {
	Channel string   `json:"channel"`
	Count   int      `json:"count"`
	Users   *int     `json:"users,omitempty"` // number of different users; only on the first page
	Clients []Member `json:"clients"`
	Cursor  string   `json:"cursor,omitempty"` // of the next page, "" for the last one
	Next    string   `json:"next,omitempty"`   // the former name of Cursor, with the same value
}

// Presence returns the clients in a channel, on servers that have a lease now.
func (c *Client) Presence(ctx context.Context, channel string, p PageQuery) (PresencePage, error) {
	return get[PresencePage](ctx, c, channelPath(channel, "/presence"), p.values())
}

// PresenceCount is like Presence, without the clients.
func (c *Client) PresenceCount(ctx context.Context, channel string) (PresencePage, error) {
	return get[PresencePage](ctx, c, channelPath(channel, "/presence"), url.Values{"limit": {"0"}})
}

// StatePage is a page of the fields of a channel, in the order of their names.
type StatePage struct {
	Channel string `json:"channel"`
	ID      int64  `json:"id"` // the page holds all changes up to this id
	Fields  Fields `json:"fields"`
	Cursor  string `json:"cursor,omitempty"` // of the next page, "" for the last one
}

// State reads fields of a channel. A page ends after p.Limit fields or about 32 KiB. If the ID
// differs between two pages, the channel has changed in between.
func (c *Client) State(ctx context.Context, channel string, p PageQuery) (StatePage, error) {
	return get[StatePage](ctx, c, channelPath(channel, "/state"), p.values())
}

// ChannelFields are some fields of a channel.
type ChannelFields struct {
	Channel string `json:"channel"`
	ID      int64  `json:"id"`
	Fields  Fields `json:"fields"`
	Error   *Error `json:"error,omitempty"` // this channel cannot be read
}

// QueryState reads up to 8 fields of up to 100 channels.
func (c *Client) QueryState(ctx context.Context, channels, fields []string) ([]ChannelFields, error) {
	var answer struct {
		Channels []ChannelFields `json:"channels"`
	}
	body := map[string][]string{"channels": channels, "fields": fields}
	err := c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/state/query", Body: body}, &answer)
	return answer.Channels, err
}
