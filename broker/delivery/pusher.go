package delivery

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
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
	ConfirmChannel(ctx context.Context, channel string, id int64) (*queue.Marker, error)
	ConfirmClient(ctx context.Context, client string, id int64) (*queue.Marker, error)
	Client(ctx context.Context, client string) (queue.Client, bool, error)
}

// Options configures a Pusher. All fields are required.
type Options struct {
	Registry Registry
	Queue    Queue
	Self     func() string                      // this server's id
	Live     func(server string) bool           // has a lease, as far as we know
	Local    func(h peer.Hint)                  // a hint for this server
	Remote   func(server string, h peer.Hint)   // a hint for another one; it may be lost
	Stored   func(kind string, d time.Duration) // a message was stored: "channel" or "client"
	Epoch    func() uint64                      // changes when the store may have lost messages
	Lost     func()                             // it has, and Epoch did not say so
}

// Pusher stores messages and tells their owners.
type Pusher struct {
	opts    Options
	witness *witness
}

// New returns a Pusher.
func New(opts Options) *Pusher { return &Pusher{opts, newWitness(opts.Epoch, opts.Lost)} }

// Payload is what a push carries, whoever it goes to.
type Payload struct {
	Data []byte        // compact JSON
	TTL  time.Duration // client queues: how long to keep at least. Zero means the default
	Key  string        // idempotency key, or empty
	// Durable: a replica must have it. Where none has in time it is stored, the owners are
	// told, and the error is queue.ErrNotReplicated.
	Durable bool
}

// ChannelResult is what became of a push to a channel.
type ChannelResult struct {
	ID        int64
	Servers   int // live servers with subscribers
	Duplicate bool
}

// ToChannel stores p in the channel and tells the servers that hold subscribers.
func (p *Pusher) ToChannel(ctx context.Context, channel string, payload Payload) (ChannelResult, error) {
	start := time.Now()
	a, err := p.opts.Queue.AppendChannel(ctx, queue.ChannelPush{
		Channel: channel, Data: payload.Data, Key: payload.Key, Durable: payload.Durable,
	})
	if err != nil && !errors.Is(err, queue.ErrNotReplicated) {
		p.failed(place{peer.Channel, channel}, err)
		return ChannelResult{}, err
	}
	p.stored(place{peer.Channel, channel}, a.ID, a.Prev, a.Duplicate)
	p.opts.Stored("channel", time.Since(start))
	result := ChannelResult{ID: a.ID, Duplicate: a.Duplicate}
	hint := peer.Hint{Kind: peer.Channel, Name: channel, ID: a.ID, Prev: a.Prev, Data: inline(payload.Data, a.Duplicate)}
	for _, server := range a.Servers {
		if p.opts.Live(server) {
			result.Servers++
		}
		p.tell(server, hint)
	}
	return result, err
}

// inline is what travels in the hint. A duplicate is hinted too, since whoever stored it may
// have died before the hint; but its predecessor is not known, so the owner reads.
func inline(data []byte, duplicate bool) []byte {
	if duplicate || len(data) > maxInline {
		return nil
	}
	return data
}

func (p *Pusher) tell(server string, h peer.Hint) {
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

// ToClient stores p in the client's queue and tells its owner. When user is not empty the client
// must be that user's.
func (p *Pusher) ToClient(ctx context.Context, client, user string, payload Payload) (ClientResult, error) {
	start := time.Now()
	a, err := p.opts.Queue.AppendClient(ctx, queue.ClientPush{
		Client: client, User: user, Data: payload.Data, TTL: payload.TTL, Key: payload.Key, Durable: payload.Durable,
	})
	if err != nil && !errors.Is(err, queue.ErrNotReplicated) {
		p.failed(place{peer.Client, client}, err)
		return ClientResult{}, err
	}
	p.stored(place{peer.Client, client}, a.ID, a.Prev, a.Duplicate)
	p.opts.Stored("client", time.Since(start))
	if a.Server != "" {
		p.tell(a.Server, peer.Hint{Kind: peer.Client, Name: client, ID: a.ID, Prev: a.Prev, Data: inline(payload.Data, a.Duplicate)})
	}
	return ClientResult{
		Client: client, ID: a.ID, Duplicate: a.Duplicate,
		Online: a.Server != "" && p.opts.Live(a.Server),
	}, err
}

// ToUser stores p for every known client of the user; they share round trips. A client
// that is not the user's any more is taken off the list.
func (p *Pusher) ToUser(ctx context.Context, user string, payload Payload) ([]ClientResult, error) {
	bindings, err := p.opts.Registry.User(ctx, user)
	if err != nil {
		return nil, err
	}
	results := make([]ClientResult, len(bindings))
	unconfirmed := make([]error, len(bindings)) // another error comes first: that one is not even stored
	var group errgroup.Group                    // no call is given up because another failed: what it stored must be hinted
	for i, b := range bindings {
		group.Go(func() error {
			r, err := p.ToClient(ctx, b.Client, user, payload)
			if errors.Is(err, queue.ErrUnknownClient) {
				return p.opts.Registry.ForgetUser(ctx, user, b.Client, b.Generation)
			}
			results[i] = r
			if errors.Is(err, queue.ErrNotReplicated) {
				unconfirmed[i], err = err, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	results = slices.DeleteFunc(results, func(r ClientResult) bool { return r.Client == "" })
	return results, cmp.Or(unconfirmed...)
}

// Notify tells the owners that queues have something new: a backend wrote to the store itself.
func (p *Pusher) Notify(ctx context.Context, channels, clients []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(256)
	for _, channel := range channels {
		group.Go(func() error {
			servers, err := p.opts.Registry.ChannelServers(ctx, channel)
			for _, server := range servers {
				p.tell(server, peer.Hint{Kind: peer.Channel, Name: channel, ID: math.MaxInt64})
			}
			return err
		})
	}
	for _, client := range clients {
		group.Go(func() error {
			c, _, err := p.opts.Queue.Client(ctx, client)
			if c.Server != "" {
				p.tell(c.Server, peer.Hint{Kind: peer.Client, Name: client, ID: math.MaxInt64})
			}
			return err
		})
	}
	return group.Wait()
}

// Units runs pushes that came in one call: those to the same target one after the other, in
// their order; different targets side by side, so that they share round trips.
type Units struct {
	order []string
	byKey map[string][]func(unconfirmed bool) bool
}

// Add queues f behind everything added for the same target. f says whether it waited for a
// replica in vain, and is told whether one before it did: a thousand that wait one after the
// other would take a thousand times as long.
func (u *Units) Add(target string, f func(unconfirmed bool) bool) {
	if u.byKey == nil {
		u.byKey = make(map[string][]func(bool) bool)
	}
	if _, ok := u.byKey[target]; !ok {
		u.order = append(u.order, target)
	}
	u.byKey[target] = append(u.byKey[target], f)
}

// Run runs all and returns when all have run.
func (u *Units) Run() {
	var wg sync.WaitGroup
	limit := make(chan struct{}, 256)
	for _, target := range u.order {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			unconfirmed := false
			for _, f := range u.byKey[target] {
				unconfirmed = f(unconfirmed) || unconfirmed
			}
		})
	}
	wg.Wait()
}
