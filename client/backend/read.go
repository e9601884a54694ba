package backend

import (
	"context"
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

// History reads messages of a channel.
func (c *Client) History(ctx context.Context, channel string, q HistoryQuery) (page HistoryPage, err error) {
	err = c.Call(ctx, Request{
		Method: http.MethodGet, Path: channelPath(channel, "/history"), Query: q.values(), Wait: q.Wait,
	}, &page)
	return page, err
}

// PresenceCount is like Presence, without the clients.
func (c *Client) PresenceCount(ctx context.Context, channel string) (PresencePage, error) {
	return get[PresencePage](ctx, c, channelPath(channel, "/presence"), url.Values{"limit": {"0"}})
}
