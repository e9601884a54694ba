package delivery

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/broker/peer"
	"switchboard/queue"
	"switchboard/registry"
)

// maxInline is the largest payload that travels in a hint; a larger one is read from
// the store by each owner.
const maxInline = 8 << 10

// Registry is what pushing needs of the registry.
type Registry interface {
	User(ctx context.Context, user string) ([]registry.Binding, error)
	ForgetUser(ctx context.Context, user, client string, generation int64) error
	ChannelServers(ctx context.Context, channel string) ([]string, error)
}

// Queue is what pushing needs of the queue.
type Queue interface {
	AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error)
	AppendClient(ctx context.Context, push queue.ClientPush) (queue.ClientAppended, error)
	AppendChannels(ctx context.Context, pushes []queue.ChannelPush) []queue.Outcome[queue.Appended]
	AppendClients(ctx context.Context, pushes []queue.ClientPush) []queue.Outcome[queue.ClientAppended]
	ConfirmChannel(ctx context.Context, channel string, id int64) (*queue.Marker, error)
	ConfirmClient(ctx context.Context, client string, id int64) (*queue.Marker, error)
	Client(ctx context.Context, client string) (queue.Client, bool, error)
}

// Options configures a Pusher. All fields but Epoch, Keep and SetAckDeadline are required.
type Options struct {
	Registry Registry
	Queue    Queue
	Self     func() string                      // this server's id
	Live     func(server string) bool           // has a lease, as far as we know
	Local    func(h peer.Hint)                  // a hint for this server
	Remote   func(server string, h peer.Hint)   // a hint for another one; it may be lost
	Stored   func(kind string, d time.Duration) // a message was stored: "channel" or "client"
	Epoch    func() uint64                      // changes when the store may have lost messages; nil for one that cannot
	Lost     func()                             // it has, and Epoch did not say so
	// Keep is how much of a channel is kept: messages, and how long after the last one; zeros for as much as
	// of any. Nil means that for all.
	Keep func(channel string) (messages int, age time.Duration)
	// SetAckDeadline has the backend told of a message that nobody acknowledges in time. Calls about the same ids are one. Nil means
	// that there is nobody to tell: no push may ask for it.
	SetAckDeadline func(ctx context.Context, w AckDeadline) error
}

// Pusher stores messages and tells their owners.
type Pusher struct {
	opts Options
	log  *storedLog
}

// New returns a Pusher.
func New(opts Options) *Pusher { return &Pusher{opts, newStoredLog(opts.Epoch, opts.Lost)} }

// Payload is what a push carries, whoever it goes to.
type Payload struct {
	Data []byte        // compact JSON
	TTL  time.Duration // client queues: how long to keep at least. Zero means the default
	Key  string        // idempotency key, or empty
	// NotifyAfter is how long the clients have to acknowledge it, before the backend is told. Zero means for ever.
	NotifyAfter time.Duration
	// First: of all clients of a user, the first acknowledgement counts and withdraws it from the others' queues.
	First bool
	// Durable: a replica must have it. Where none has in time it is stored, the owners are
	// told, and the error is queue.ErrNotReplicated.
	Durable bool
	// Known stores nothing where that would bring a channel into being: queue.ErrNewChannel.
	Known bool
}

// ChannelResult is what became of a push to a channel.
type ChannelResult struct {
	ID        int64
	Servers   int // live servers with subscribers
	Duplicate bool
	New       bool // it brought the channel into being
}

// ToChannel stores payload in the channel and tells the servers that hold subscribers.
func (p *Pusher) ToChannel(ctx context.Context, channel string, payload Payload) (ChannelResult, error) {
	start := time.Now()
	a, err := p.opts.Queue.AppendChannel(ctx, p.channelPush(channel, payload))
	return p.afterChannelAppend(channel, payload, a, err, time.Since(start))
}

func (p *Pusher) channelPush(channel string, payload Payload) queue.ChannelPush {
	push := queue.ChannelPush{Channel: channel, Data: payload.Data, Key: payload.Key, Durable: payload.Durable, Known: payload.Known}
	if p.opts.Keep != nil {
		push.Cap, push.TTL = p.opts.Keep(channel)
	}
	return push
}

// inChannel goes on with what the store said of a push after so long.
func (p *Pusher) afterChannelAppend(channel string, payload Payload, a queue.Appended, err error, took time.Duration) (ChannelResult, error) {
	if err != nil && !errors.Is(err, queue.ErrNotReplicated) {
		p.recordFailure(queueKey{peer.Channel, channel}, err)
		return ChannelResult{}, err
	}
	p.recordStored(queueKey{peer.Channel, channel}, a.ID, a.Prev, a.Duplicate)
	p.opts.Stored("channel", took)
	result := ChannelResult{ID: a.ID, Duplicate: a.Duplicate, New: a.Prev == 0 && !a.Duplicate}
	hint := peer.Hint{Kind: peer.Channel, Name: channel, ID: a.ID, Prev: a.Prev, Data: inlineData(payload.Data, a.Duplicate)}
	for _, server := range a.Servers {
		if p.opts.Live(server) {
			result.Servers++
		}
		p.notify(server, hint)
	}
	return result, err
}

// inline is what travels in the hint. A duplicate is hinted too, since whoever stored it may
// have died before the hint; but its predecessor is not known, so the owner reads.
func inlineData(data []byte, duplicate bool) []byte {
	if duplicate || len(data) > maxInline {
		return nil
	}
	return data
}

func (p *Pusher) notify(server string, h peer.Hint) {
	if server == p.opts.Self() {
		p.opts.Local(h)
	} else {
		p.opts.Remote(server, h)
	}
}

// ClientResult is what became of a push to one client.
type ClientResult struct {
	Client    string
	ID        int64
	Online    bool
	Duplicate bool
}

// ToClient stores payload in the client's queue and tells its owner. When user is not empty the client
// must be that user's. Nobody watches over it: PushBatch does.
func (p *Pusher) ToClient(ctx context.Context, client, user string, payload Payload) (ClientResult, error) {
	start := time.Now()
	a, err := p.opts.Queue.AppendClient(ctx, clientPush(client, user, payload))
	return p.afterClientAppend(client, payload, a, err, time.Since(start))
}

func clientPush(client, user string, p Payload) queue.ClientPush {
	return queue.ClientPush{Client: client, User: user, Data: p.Data, TTL: p.TTL, Key: p.Key, Durable: p.Durable}
}

func (p *Pusher) afterClientAppend(client string, payload Payload, a queue.ClientAppended, err error, took time.Duration) (ClientResult, error) {
	if err != nil && !errors.Is(err, queue.ErrNotReplicated) {
		p.recordFailure(queueKey{peer.Client, client}, err)
		return ClientResult{}, err
	}
	p.recordStored(queueKey{peer.Client, client}, a.ID, a.Prev, a.Duplicate)
	p.opts.Stored("client", took)
	if a.Server != "" {
		p.notify(a.Server, peer.Hint{Kind: peer.Client, Name: client, ID: a.ID, Prev: a.Prev, Data: inlineData(payload.Data, a.Duplicate)})
	}
	return ClientResult{
		Client: client, ID: a.ID, Duplicate: a.Duplicate,
		Online: a.Server != "" && p.opts.Live(a.Server),
	}, err
}

// ToUser stores payload for every known client of the user, in shared round trips. A client
// that is not the user's any more is taken off the list.
func (p *Pusher) ToUser(ctx context.Context, user string, payload Payload) ([]ClientResult, error) {
	bindings, err := p.opts.Registry.User(ctx, user)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	pushes := make([]queue.ClientPush, len(bindings))
	group := ""
	if payload.First && (len(bindings) > 1 || payload.Key != "") { // with a key it may be repeated when there are more
		group = groupName(user, payload.Key)
	}
	for i, b := range bindings {
		pushes[i] = clientPush(b.Client, user, payload)
		pushes[i].First = group
	}
	results := make([]ClientResult, 0, len(bindings))
	var failed, unconfirmed error // who failed comes first: that one is not even stored
	for i, o := range p.opts.Queue.AppendClients(ctx, pushes) {
		b := bindings[i]
		r, err := p.afterClientAppend(b.Client, payload, o.Value, o.Err, time.Since(start))
		switch {
		case errors.Is(err, queue.ErrUnknownClient):
			failed = cmp.Or(failed, p.opts.Registry.ForgetUser(ctx, user, b.Client, b.Generation))
			continue
		case errors.Is(err, queue.ErrNotReplicated):
			unconfirmed = cmp.Or(unconfirmed, err)
		case err != nil:
			failed = cmp.Or(failed, err)
		}
		results = append(results, r)
	}
	if failed != nil {
		return nil, failed
	}
	if err := p.setAckDeadline(ctx, user, results, payload); err != nil {
		return results, err
	}
	return results, unconfirmed
}

// Notify tells the owners that queues have something new: a backend wrote to the store itself.
func (p *Pusher) Notify(ctx context.Context, channels, clients []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(256)
	for _, channel := range channels {
		group.Go(func() error {
			servers, err := p.opts.Registry.ChannelServers(ctx, channel)
			for _, server := range servers {
				p.notify(server, peer.Hint{Kind: peer.Channel, Name: channel, ID: math.MaxInt64})
			}
			return err
		})
	}
	for _, client := range clients {
		group.Go(func() error {
			c, _, err := p.opts.Queue.Client(ctx, client)
			if c.Server != "" {
				p.notify(c.Server, peer.Hint{Kind: peer.Client, Name: client, ID: math.MaxInt64})
			}
			return err
		})
	}
	return group.Wait()
}
