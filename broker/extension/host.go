package extension

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/delivery"
	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// Cluster is the servers that share the store. Package cluster implements it.
type Cluster interface {
	Live(server string) bool
	Disconnect(ctx context.Context, server, client string) (bool, error)
	EndSubscription(ctx context.Context, server, client, channel string, why *wire.Error) error
	CallAs(ctx context.Context, server, client, name string, in, out any) error
}

// Queue holds the methods of a queue that a Host calls.
type Queue interface {
	ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage]
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error)
	Client(ctx context.Context, client string) (queue.Client, bool, error)
}

// Registry holds the methods of a registry that a Host calls.
type Registry interface {
	User(ctx context.Context, user string) ([]registry.Binding, error)
}

// HostOptions are the parts of the broker that a Host uses. All are required.
type HostOptions struct {
	Pusher   *delivery.Pusher
	Queue    Queue
	Registry Registry
	Cluster  Cluster
	// ServerID returns the current id of this server.
	ServerID func() string
	// CheckToken returns an error if clients could not connect with the token.
	CheckToken func(token string) error
	// Address returns the address of the client that made a request.
	Address func(r *http.Request) netip.Addr
	Logger  zerolog.Logger
}

// Host is what the broker offers to its extensions.
type Host struct {
	opts HostOptions
	set  *Set
}

// ChangeOptions are options of Host.Change.
type ChangeOptions struct {
	// Key is the idempotency key. Zero means none.
	Key string
	// Durable waits until a replica has the change, see delivery.Payload.
	Durable bool
	// Script makes the update of Change by a script of the extension, see [queue.StateScript]. Nil for
	// none.
	Script *queue.ScriptCall
}

// Change changes the state of a channel and notifies the subscribers. The update carries no
// permissions: its conditions, claims and limits are all that is checked. If it is refused, the
// error is a *state.Refusal in a *session.ChannelError. With queue.ErrNotReplicated the result is
// valid.
func (h *Host) Change(ctx context.Context, channel string, u *state.Update, o ChangeOptions) (delivery.ChannelResult, error) {
	r, err := h.opts.Pusher.ToChannel(ctx, channel, delivery.Payload{Update: u, Key: o.Key, Durable: o.Durable, Script: o.Script})
	if _, refused := errors.AsType[*state.Refusal](err); refused {
		err = &session.ChannelError{Channel: channel, Err: err}
	}
	return r, err
}

// Push sends data to a channel without a change of its state.
func (h *Host) Push(ctx context.Context, channel string, data []byte, o ChangeOptions) (delivery.ChannelResult, error) {
	return h.opts.Pusher.ToChannel(ctx, channel, delivery.Payload{Data: data, Key: o.Key, Durable: o.Durable})
}

// ReadStates reads parts of the states of channels, in one round trip.
func (h *Host) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	return h.opts.Queue.ReadStates(ctx, reads)
}

// SweepStates removes the fields of channels that are due, and notifies the subscribers.
func (h *Host) SweepStates(ctx context.Context, channels ...string) error {
	steps := make([]queue.StateStep, len(channels))
	for i, channel := range channels {
		steps[i] = queue.StateStep{Channel: channel, Kind: queue.Sweep}
	}
	var errs []error
	for _, o := range h.opts.Pusher.StepStates(ctx, steps) {
		errs = append(errs, o.Err)
	}
	return errors.Join(errs...)
}

// ReadState reads the named fields of one channel. Absent fields are not in the map.
func (h *Host) ReadState(ctx context.Context, channel string, names ...string) (map[string]*state.Field, error) {
	o := h.ReadStates(ctx, []queue.StateRead{{Channel: channel, Fields: names}})[0]
	fields := make(map[string]*state.Field, len(o.Value.Fields))
	for _, f := range o.Value.Fields {
		fields[f.Name] = f.Field
	}
	return fields, o.Err
}

// ReadGroup reads all fields of a channel whose names begin with prefix, ordered by name.
func (h *Host) ReadGroup(ctx context.Context, channel, prefix string) ([]queue.NamedField, error) {
	var list []queue.NamedField
	read := queue.StateRead{Channel: channel, Prefix: prefix, Bytes: state.PageBytes}
	for {
		o := h.ReadStates(ctx, []queue.StateRead{read})[0]
		list = append(list, o.Value.Fields...)
		if read.Cursor = o.Value.Next; o.Err != nil || read.Cursor == "" {
			return list, o.Err
		}
	}
}

// History returns the messages of a channel after an id, oldest first, at most limit.
func (h *Host) History(ctx context.Context, channel string, after int64, limit int) (queue.Page, error) {
	return h.opts.Queue.ReadChannel(ctx, channel, after, limit)
}

// User returns the connections of a user.
func (h *Host) User(ctx context.Context, user string) ([]registry.Binding, error) {
	return h.opts.Registry.User(ctx, user)
}

// Unsubscribe ends the subscription of each of the user's clients to a channel. The clients receive
// `unsubscribed` with why.
func (h *Host) Unsubscribe(ctx context.Context, user, channel string, why *wire.Error) error {
	bindings, err := h.User(ctx, user)
	for _, c := range bindings {
		err = errors.Join(err, h.UnsubscribeClient(ctx, c.Server, c.Client, channel, why))
	}
	return err
}

// UnsubscribeClient ends the subscription of a client on the given server. It does nothing if the
// server is not live.
func (h *Host) UnsubscribeClient(ctx context.Context, server, client, channel string, why *wire.Error) error {
	return h.opts.Cluster.EndSubscription(ctx, server, client, channel, why)
}

// Disconnect closes the connections of all of the user's clients.
func (h *Host) Disconnect(ctx context.Context, user string) error {
	bindings, err := h.User(ctx, user)
	for _, c := range bindings {
		_, e := h.opts.Cluster.Disconnect(ctx, c.Server, c.Client)
		err = errors.Join(err, e)
	}
	return err
}

// DisconnectClient closes the connection of one client.
func (h *Host) DisconnectClient(ctx context.Context, client string) error {
	c, _, err := h.Client(ctx, client)
	if err == nil && c.Server != "" {
		_, err = h.opts.Cluster.Disconnect(ctx, c.Server, client)
	}
	return err
}

// CallAs calls Extension.ClientCalls[name] in the name of a client, on the server that holds its
// connection, with in encoded as JSON, and decodes the result into out. Errors of type *wire.Error
// and *wire.DetailedError are returned. If the client is not connected there, the error is
// not_found. After a timeout or a lost link, the call may still be executed.
func (h *Host) CallAs(ctx context.Context, server, client, name string, in, out any) error {
	return h.opts.Cluster.CallAs(ctx, server, client, name, in, out)
}

// CheckToken returns an error if clients could not connect with the token. An open broker accepts
// every token.
func (h *Host) CheckToken(token string) error { return h.opts.CheckToken(token) }

// Address returns the address of the client that made an HTTP request: the one that a trusted proxy
// names, or else the one of the connection. It is the zero Addr if it is not known.
func (h *Host) Address(r *http.Request) netip.Addr { return h.opts.Address(r) }

// Client returns the queue's record of a client. ok is false if it is unknown.
func (h *Host) Client(ctx context.Context, client string) (c queue.Client, ok bool, err error) {
	return h.opts.Queue.Client(ctx, client)
}

// Live reports whether a server is live.
func (h *Host) Live(server string) bool { return h.opts.Cluster.Live(server) }

// ServerID returns the current id of this server.
func (h *Host) ServerID() string { return h.opts.ServerID() }

// Now returns the current time. Rules about time are decided by the store's clock, not by this one.
func (h *Host) Now() time.Time { return time.Now() }

// Logger returns the broker's log.
func (h *Host) Logger() zerolog.Logger { return h.opts.Logger }
