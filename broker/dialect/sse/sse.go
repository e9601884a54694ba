package sse

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// Dialect implements dialect.Dialect.
type Dialect struct {
	ping  time.Duration
	retry func() int64 // ms after which a client connects again when its connection breaks
}

// New returns the dialect. A stream gets a comment when it had no event for the duration ping.
func New(ping time.Duration) *Dialect {
	return &Dialect{ping: ping, retry: func() int64 { return minRetry + rand.Int64N(minRetry) }}
}

// minRetry is the shortest retry delay of a client, in ms. The delay is random, up to twice as
// much, so that the clients of a server that crashes do not all come back at once.
const minRetry = 1000

// Query is the content of a request to /sse.
type Query struct {
	Connect  wire.Request
	Channels []string
	Presence bool      // receive the joins and leaves of these channels
	Last     *Position // nil if the client does not resume
}

// ParseQuery reads a request. The error is for the client.
func ParseQuery(u *url.URL, h http.Header) (*Query, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, wire.Errorf(wire.BadRequest, "the query of the URL is malformed")
	}
	q := &Query{Channels: values["channel"]}
	// The names are copies, because a stream keeps them. Parts of the URL would keep all of it in
	// memory, with its token.
	for i, name := range q.Channels {
		q.Channels[i] = strings.Clone(name)
	}
	q.Connect = wire.Request{
		Type: wire.TypeConnect, Token: values.Get("token"), Client: strings.Clone(values.Get("client")),
		User: strings.Clone(values.Get("user")), Secret: values.Get("secret"), Ack: values.Get("ack"),
	}
	if token, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok {
		q.Connect.Token = token
	}
	if q.Connect.Ack != "" && q.Connect.Ack != "auto" && q.Connect.Ack != "client" {
		return nil, wire.Errorf(wire.BadRequest, `ack: %.40q is neither "client" nor "auto"`, q.Connect.Ack)
	}
	switch presence := values.Get("presence"); presence {
	case "", "false":
	case "true":
		q.Presence = true
	default:
		return nil, wire.Errorf(wire.BadRequest, "presence: %.40q is neither true nor false", presence)
	}
	if err := checkChannels(q.Channels); err != nil {
		return nil, err
	}
	last := h.Get("Last-Event-ID")
	if last == "" {
		last = values.Get("last_event_id")
	}
	if last != "" {
		if q.Last, err = ParsePosition(last); err != nil {
			return nil, wire.Errorf(wire.BadRequest, "%s", err.Error())
		}
		q.resume()
	}
	return q, nil
}

// checkChannels refuses too many channels, invalid names, and channels that an id cannot tell
// apart.
func checkChannels(names []string) error {
	if len(names) > maxChannels {
		return wire.Errorf(wire.BadRequest, "channel: %d channels, at most %d are allowed", len(names), maxChannels)
	}
	seen := make(map[hash]string, len(names))
	for _, name := range names {
		if err := wire.CheckName("channel", name); err != nil {
			return err
		}
		h := hashOf(name)
		if other, twice := seen[h]; twice && other == name {
			return wire.Errorf(wire.BadRequest, "channel: %s is given twice", name)
		} else if twice {
			return wire.Errorf(wire.BadRequest, "channel: %s and %s cannot share a stream; rename one", other, name)
		}
		seen[h] = name
	}
	return nil
}

// resume completes connect with the last id. If that id has a secret, its client and secret replace
// those of the request. Otherwise its client is used if the request has none. The position on $all
// always comes from the id.
func (q *Query) resume() {
	c, last := &q.Connect, q.Last
	switch {
	case last.Secret != "":
		c.Client, c.Secret = last.Client, last.Secret
	case c.Client == "":
		c.Client = wire.ClientPart(last.Client)
	}
	c.After = &last.All
}

// Open implements dialect.Dialect. The requests are connect, an acknowledgement of the client
// queue, and one subscribe for each channel.
func (d *Dialect) Open(h dialect.Hello) (dialect.Opening, error) {
	q, err := ParseQuery(h.URL, h.Header)
	switch {
	case err != nil:
		return dialect.Opening{}, refusal(err)
	case q.Last != nil && q.Last.Final:
		return dialect.Opening{}, &dialect.Refusal{Status: http.StatusNoContent} // EventSource stops
	}
	s := &start{headers: h.Response, secret: q.Connect.Secret}
	c := &codec{d: d, all: -1, extra: &extra{start: s}}
	c.encoding = dialect.Encoding{Codec: c, Framing: dialect.Stream}
	o := dialect.Opening{Encoding: &c.encoding, Requests: make([]wire.Request, 0, 2+len(q.Channels))}
	o.Requests = append(o.Requests, q.Connect)
	if last := q.Last; last != nil {
		c.client, c.all, c.inbox = last.Client, last.All, last.Inbox
		c.extra.secret, c.extra.superseded = last.Secret, last.Superseded
		s.fromID = last.Secret != ""
		if last.Inbox > 0 {
			o.Requests = append(o.Requests, wire.Request{Type: wire.TypeAck, ID: last.Inbox, AckOf: last.Client})
		}
	}
	if more := len(q.Channels) - 1; more > 0 {
		c.extra.more = make([]channel, 0, more)
	}
	for i, name := range q.Channels {
		ch := channel{name: name, hash: hashOf(name), after: -1}
		subscribe := wire.Request{
			Type: wire.TypeSubscribe, Ref: wire.RefOf(int64(i) + 1), Channel: name, Presence: q.Presence && !isUserChannel(name),
		}
		if q.Last != nil {
			if after, ok := q.Last.channels[ch.hash]; ok {
				ch.after, subscribe.After = after, &after
			}
		}
		c.addChannel(ch)
		o.Requests = append(o.Requests, subscribe)
	}
	return o, nil
}

// isUserChannel reports whether name is the system channel for the presence of a user.
func isUserChannel(name string) bool { return strings.HasPrefix(name, wire.UserChannelPrefix) }

// refusal returns the answer to a request that ParseQuery has refused.
func refusal(err error) *dialect.Refusal {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		e = wire.Errorf(wire.BadRequest, "%s", err.Error())
	}
	return &dialect.Refusal{Status: e.Code.Status(), Text: e.Error(), JSON: RefusalBody(e)}
}
