package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/rs/zerolog"

	"switchboard/internal/wire"
)

// Options configures a Client.
type Options struct {
	// URLs are the instances: ws://host/ws, wss://host/ws or tcp://host:port. The client starts with a
	// random one, and tries the next one while one is silent. Zero means an error.
	URLs []string
	// Client is the name or id of this device, the same over reconnects. The broker puts the user and
	// a '/' before a name. A name has no '/'. Zero means that the broker assigns one, which the
	// client keeps.
	Client string
	// Secret proves the ownership of Client, for a client without a user: 16 to 200 bytes. With
	// another secret than before, the broker assigns another id. Zero means a random one.
	Secret string
	// User is the user of the client, in an open broker. Zero means none, or the token's user.
	User string
	// Token is sent with connect. Zero means none, or the result of TokenSource.
	Token string
	// TokenSource returns a token. It is called before the first connection, and again after the last
	// token has expired or is no longer accepted. Zero means that Run ends when Token expires.
	TokenSource func(ctx context.Context) (string, error)
	// TLS is the configuration of wss. Zero means the authorities of the system. The Client uses a
	// copy.
	TLS *tls.Config
	// AutoAck makes the broker acknowledge a message of the client queue when it is written to the
	// socket. Zero means that the client acknowledges it after OnMessage returns.
	AutoAck bool

	// OnMessage is called for every message. Zero means that messages are dropped and acknowledged.
	OnMessage func(Message)
	// OnErase is called when a message of a channel was erased, after the messages before the report.
	// Remove the message where you show it. Zero means that reports are ignored.
	OnErase func(Erased)
	// OnFields is called when the fields of a channel have arrived: after a Subscribe with State, and
	// again when the client may have missed changes. The Snapshot replaces what the caller knew. Later
	// changes arrive in Message.Changes. Zero means that only Client.Fields shows them.
	OnFields func(Snapshot)
	// OnPresence is called when other clients enter or leave a channel that was subscribed with
	// Presence. Zero means that this is ignored.
	OnPresence func(Presence)
	// OnHere is called when another client shows a value in such a channel. Values end, without a
	// call, when their client leaves, and when this client's connection ends. Zero means that they
	// are ignored.
	OnHere func(Here)
	// OnGap is called when messages are missing. Zero means that gaps are ignored.
	OnGap func(Gap)
	// OnState is called when an attempt begins, succeeds or fails, and when a connection ends. Zero
	// means that states are ignored.
	OnState func(State)
	// OnSubscribed is called when the backend has subscribed the client to a channel. The subscription
	// is then like one of Subscribe: it lasts over all reconnects, until Unsubscribe or
	// OnUnsubscribed. Zero means that its messages arrive without notice.
	OnSubscribed func(Subscription)
	// OnUnsubscribed is called when the broker ends a subscription, after a reconnect or under a new
	// token. Zero means that it is only logged.
	OnUnsubscribed func(channel string, err *Error)

	// OnLoadError is called when SubscribeOptions.Load fails, or returns a position that cannot be
	// right. It is called again after a delay. Zero means that it is only logged.
	OnLoadError func(channel string, err error)

	// BackoffMin is the least delay of an attempt after a failure of its URL. Zero means 200 ms.
	BackoffMin time.Duration
	// BackoffMax is the longest delay of an attempt, unless the broker asks for more. Zero means 20 s.
	BackoffMax time.Duration
	// Logger gets reconnects as warnings, and other lines at lower levels. Zero means no log.
	Logger zerolog.Logger
}

// Message is one message from a channel or from the client queue.
type Message struct {
	Channel string // "" for the client queue, AllChannel for pushes to all clients
	ID      int64
	Data    json.RawMessage // owned by the callback; nil for a message that only changes fields
	// By is the author: the id of the client that has published the message, or its alias. The broker
	// sets it. Empty for a message of the backend, and if this client may not see the presence of the
	// channel.
	By string
	// Changes are the changes that the message has made to the fields that the client holds. Nil if
	// there are none, if they were included when the fields arrived, and without
	// SubscribeOptions.State.
	Changes *Changes
}

// Erased is a message of a channel that was erased.
type Erased struct {
	Channel string
	ID      int64 // of the erased message
}

// Gap reports missing messages, with ids above After and up to ID. An ID below After is a reset:
// the broker has forgotten ids that this client saw, and all messages above ID follow.
type Gap struct {
	Channel string // "" for the client queue
	After   int64  // the last id before the gap, if known
	ID      int64
}

// Phase is the stage of a connection.
type Phase string

// The phases of a connection.
const (
	Connecting Phase = "connecting" // an attempt begins
	Connected  Phase = "connected"  // the broker has answered connect
	Closed     Phase = "closed"     // the attempt failed or the connection has ended
)

// State is the argument of OnState. Phase determines which fields are set.
type State struct {
	Phase  Phase
	URL    string
	Client string // connected: the client id, with the user
	User   string // connected
	Server string // connected: the instance that answered
	// TokenIgnored, of Connected, means that the broker has no keys for tokens and did not read the
	// token: the user is the one of Options.User.
	TokenIgnored bool
	Err          error         // closed: a *ClosedError if the broker gave a reason
	RetryIn      time.Duration // closed: the time until the next attempt; 0 if one is being made
	Final        bool          // closed: Run returns without another attempt
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

// endpoint is one instance. raw is its URL as configured, and url has the defaults filled in.
type endpoint struct {
	raw string
	url *url.URL
}

func parseEndpoint(raw string) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil { // err would repeat the whole URL, which may hold a secret
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
