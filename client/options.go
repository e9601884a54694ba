package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/rs/zerolog"

	"switchboard/internal/wire"
)

// Options say whom a Client connects to, as whom, and what it does with what arrives.
type Options struct {
	// URLs are the instances: ws://host/ws, wss://host/ws or tcp://host:port. The first
	// one is drawn at random, a failure moves on to the next. Zero means an error.
	URLs []string
	// Client is the id of this device, stable over reconnects. The broker puts the user and a '/'
	// before it; the part behind that has no '/'. Zero means that the broker gives one, which is
	// then kept.
	Client string
	// Secret proves that Client is this client's own, where it has no user: 16 to 200 bytes,
	// the same as before. Without it the broker gives another id. Zero means one that is drawn.
	Secret string
	// User is who the client says it is, where the broker is open. Zero means nobody, or
	// whoever the token names.
	User string
	// Token is sent with connect. Zero means none, or that of TokenSource.
	Token string
	// TokenSource is asked for a token before the first connection and when the broker no
	// longer takes the one it gave. Zero means that Token is the only one, and that its
	// expiry ends Run.
	TokenSource func(ctx context.Context) (string, error)
	// AutoAck makes the broker count a message of the client queue as received once it was
	// written to the socket. Zero means that it counts when OnMessage has returned.
	AutoAck bool

	// OnMessage is called with every message. Zero means that messages are dropped, which
	// acknowledges them.
	OnMessage func(Message)
	// OnGap is called where messages are missing. Zero means that nobody needs to know.
	OnGap func(Gap)
	// OnState is called when a connection is tried, is up, or is gone. Zero means that
	// nobody needs to know.
	OnState func(State)
	// OnUnsubscribed is called when the broker refuses, after a reconnect or under a new token, a channel that
	// was subscribed. Zero means that the log alone says so.
	OnUnsubscribed func(channel string, err *Error)

	// BackoffMin is the least time between two connections. Zero means 200 ms.
	BackoffMin time.Duration
	// BackoffMax is the most time between two connections, unless the broker asks for
	// more. Zero means 20 s.
	BackoffMax time.Duration
	// Logger gets reconnects as warnings and the rest below that. Zero means silence.
	Logger zerolog.Logger
}

// Message is one message from a channel or from the client queue.
type Message struct {
	Channel string // "" for the client queue, AllChannel for what goes to everyone
	ID      int64
	Data    json.RawMessage // it belongs to the callback
}

// Gap says that messages are missing: what follows comes after ID. An ID below After is
// a reset: the broker has forgotten ids that this client saw, and counts from ID again.
type Gap struct {
	Channel string // "" for the client queue
	After   int64  // the last id before the gap, as far as known
	ID      int64
}

// Phase is the stage that a State is about.
type Phase string

// The phases.
const (
	Connecting Phase = "connecting" // an attempt begins
	Connected  Phase = "connected"  // the broker has answered connect
	Closed     Phase = "closed"     // the attempt failed or the connection is gone
)

// State is what OnState gets; which fields are there depends on Phase.
type State struct {
	Phase   Phase
	URL     string
	Client  string        // connected: the id in force, user included
	User    string        // connected
	Server  string        // connected: the instance that answered
	Err     error         // closed: a *ClosedError where the broker gave a reason
	RetryIn time.Duration // closed: when the next attempt begins
	Final   bool          // closed: there is no next attempt, Run returns
}

func (o Options) withDefaults() Options {
	o.BackoffMin = cmp.Or(o.BackoffMin, 200*time.Millisecond)
	o.BackoffMax = cmp.Or(o.BackoffMax, max(20*time.Second, o.BackoffMin))
	return o
}

func (o Options) check() error {
	switch {
	case len(o.URLs) == 0:
		return errors.New("no URLs: at least one is needed")
	case o.Token != "" && o.TokenSource != nil:
		return errors.New("both Token and TokenSource: only one of them may be given")
	case o.BackoffMin < 0:
		return fmt.Errorf("BackoffMin: %s is below zero", o.BackoffMin)
	case o.BackoffMax < o.BackoffMin:
		return fmt.Errorf("BackoffMax: %s is below BackoffMin %s", o.BackoffMax, o.BackoffMin)
	}
	if o.Client != "" {
		if err := wire.CheckClientID(o.Client); err != nil {
			return err
		}
	}
	if o.Secret != "" {
		if err := wire.CheckSecret(o.Secret); err != nil {
			return err
		}
	}
	if o.User != "" {
		return wire.CheckName("user", o.User)
	}
	return nil
}

// endpoint is one instance: raw as configured, url with the defaults filled in.
type endpoint struct {
	raw string
	url *url.URL
}

func parseEndpoint(raw string) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil { // the error would repeat the whole URL, and nobody knows what is in it
		return endpoint{}, errors.New("URLs: one of them is not a URL")
	}
	switch {
	case u.User != nil || u.Query().Has("token") || u.Query().Has("secret"):
		return endpoint{}, errors.New("URLs: a URL ends up in logs, give secrets in Token and Secret")
	case u.Hostname() == "":
		return endpoint{}, fmt.Errorf("URLs: %s: the host is missing", raw)
	}
	switch u.Scheme {
	case "ws", "wss":
		if u.Path == "" || u.Path == "/" {
			u.Path = "/ws"
		}
	case "tcp":
		if _, _, err := net.SplitHostPort(u.Host); err != nil || u.Port() == "" {
			return endpoint{}, fmt.Errorf("URLs: %s: the port is missing", raw)
		}
	default:
		return endpoint{}, fmt.Errorf("URLs: %s: the scheme is none of ws, wss, tcp", raw)
	}
	return endpoint{raw: raw, url: u}, nil
}
