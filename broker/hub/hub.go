package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"switchboard/broker/loop"
	"switchboard/broker/work"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// Registry is what the hub needs of the registry.
type Registry interface {
	BindChannel(ctx context.Context, server, channel string) error
	BindChannels(ctx context.Context, server string, channels []string) []error
	UnbindChannel(ctx context.Context, server, channel string) error
}

// Queue is what the hub needs of the queue.
type Queue interface {
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error)
	ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page]
	KeepPositions(ctx context.Context, channels []string) error
}

// Options configures a Hub. All fields up to ServerID are required.
type Options struct {
	Loops    []*loop.Loop
	Pool     *work.Pool
	Registry Registry
	Queue    Queue
	ServerID func() string // changes when the server was declared dead and came back
	Timeout  time.Duration // of one call to the store. Zero means 5 s
	// PositionTTL is for how long the store knows the position of a channel without messages; those
	// of the channels here are kept. Zero means for ever.
	PositionTTL time.Duration
	Logger      zerolog.Logger
	Drained     func(lag time.Duration) // from a channel becoming dirty to its page in the tail
	// Lost is told that the store does not know a message any more that it had.
	Lost func(channel string, id int64)
}

// Hub knows the channels that have subscribers on this server.
type Hub struct {
	opts        Options
	pageReads   singleflight.Group
	drainFailed atomic.Bool          // a drain failed: the next tick marks everything dirty
	lagging     []laggingSubscribers // by loop.Index
	scratch     []scratch            // the same; each owned by its loop

	deadlines *work.Deadlines
	positions positionRefresh
	clock     storeClock

	mu       sync.Mutex // guards the fields below, and every Channel.refs
	channels map[string]*Channel
	unused   map[*Channel]struct{} // those of channels without refs

	tailsMu     sync.Mutex // guards warm
	filledTails []*Channel // whose tail has messages, for the tick to drop
}

// laggards are the subscriptions of one loop that deliver passes over.
type laggingSubscribers struct {
	list  map[*Subscription]struct{} // owned by the loop
	count atomic.Int32               // of list
}

// New returns a Hub without channels.
func New(opts Options) *Hub {
	if opts.Timeout == 0 {
		opts.Timeout = 5 * time.Second
	}
	if opts.Drained == nil {
		opts.Drained = func(time.Duration) {}
	}
	if opts.Lost == nil {
		opts.Lost = func(string, int64) {}
	}
	h := &Hub{
		opts: opts, channels: make(map[string]*Channel), unused: make(map[*Channel]struct{}),
		deadlines: work.NewDeadlines(opts.Timeout),
		positions: positionRefresh{allAt: time.Now(), recentAt: time.Now()},
	}
	h.lagging, h.scratch = make([]laggingSubscribers, len(opts.Loops)), make([]scratch, len(opts.Loops))
	for i := range h.lagging {
		h.lagging[i].list = make(map[*Subscription]struct{})
	}
	return h
}

// context bounds one call. It is shared, and ends by itself.
func (h *Hub) context() (ctx context.Context, done func()) { return h.deadlines.Context(), func() {} }

// Position is where a subscription begins.
type Position struct {
	Channel   *Channel
	Cursor    int64
	Recovered bool  // nothing between `after` and now is missing
	ResumeID  int64 // what the client gets, and resumes with: Cursor, unless the channel is empty
}

// Acquire prepares a subscription: the channel is bound to this server and its position
// known. after is the last id that the subscriber has seen, nil for none. It calls the store, so
// not from a loop. Every Position is given to Subscribe or to Release once.
func (h *Hub) Acquire(ctx context.Context, name string, after *int64) (Position, error) {
	c := h.hold(name)
	pos, err := c.acquire(ctx, after)
	if err != nil {
		h.Release(c)
		return Position{}, err
	}
	pos.ResumeID = h.resumeID(c, pos.Cursor)
	return pos, nil
}

// TryAcquire is Acquire without the store; it is false where the store must be asked.
func (h *Hub) TryAcquire(name string, after *int64) (Position, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[name]
	if c == nil || !c.bound.Load() {
		return Position{}, false
	}
	t := c.tail.Load()
	pos := Position{Channel: c, Cursor: t.last, Recovered: true}
	if after != nil {
		if _, ok := t.after(*after); !ok || *after > t.last {
			return Position{}, false
		}
		pos.Cursor, pos.Recovered = *after, *after >= t.hole
	}
	pos.ResumeID = h.resumeID(c, pos.Cursor)
	h.addRefLocked(c)
	return pos, true
}

func (h *Hub) hold(name string) *Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[name]
	if c == nil {
		c = &Channel{Name: name, hub: h, bindLock: make(chan struct{}, 1), perLoop: make([]loopSubscribers, len(h.opts.Loops))}
		c.tail.Store(new(tail))
		h.channels[name] = c
	}
	h.addRefLocked(c)
	return c
}

func (h *Hub) addRefLocked(c *Channel) {
	if c.refs++; c.refs == 1 {
		delete(h.unused, c)
	}
}

// Hold keeps the channel as it is, bound or not, until release is called.
func (h *Hub) Hold(name string) (release func()) {
	c := h.hold(name)
	return func() { h.Release(c) }
}

// EachSubscriber shows every subscriber of a channel here, each on its loop, and returns when all were seen. It is not
// called from a loop.
func (h *Hub) EachSubscriber(name string, see func(Subscriber)) {
	c := h.Channel(name)
	if c == nil {
		return
	}
	var wg sync.WaitGroup
	for i := range c.perLoop {
		l := &c.perLoop[i]
		wg.Add(1)
		h.opts.Loops[i].Post(func() {
			defer wg.Done()
			for _, sub := range l.subs {
				see(sub.to)
			}
		})
	}
	wg.Wait()
}

// Release gives back what Acquire held. The channel stays for a tick, so that a client
// which comes back at once finds it.
func (h *Hub) Release(c *Channel) {
	h.mu.Lock()
	if c.refs--; c.refs == 0 {
		h.unused[c] = struct{}{}
	}
	h.mu.Unlock()
}

// Subscribe begins a subscription at pos in s, which is vacant. It runs on l, the subscriber's loop; the
// caller then calls Start, when it has told the client.
func (h *Hub) Subscribe(s *Subscription, l *loop.Loop, to Subscriber, pos Position) {
	list := &pos.Channel.perLoop[l.Index]
	*s = Subscription{Channel: pos.Channel, to: to, loop: uint16(l.Index), cursor: pos.Cursor, index: int32(len(list.subs))}
	s.markLagging() // until Start: deliver must not overtake the answer to the client
	list.subs = append(list.subs, s)
	list.count.Store(int32(len(list.subs)))
}

// Start lets the messages behind the cursor flow.
func (s *Subscription) Start() { s.catchUp() }

// Unsubscribe ends a subscription, on its loop. One that is over, or never began, is left alone.
func (h *Hub) Unsubscribe(s *Subscription) {
	if !s.Active() {
		return
	}
	s.clearLagging()
	list := &s.Channel.perLoop[s.loop]
	last := len(list.subs) - 1
	list.subs[s.index] = list.subs[last]
	list.subs[s.index].index = s.index
	list.subs[last] = nil
	list.subs = list.subs[:last]
	list.count.Store(int32(last))
	if last == 0 {
		list.subs = nil
	}
	s.index = ended
	h.Release(s.Channel)
}

// Channel is the channel of that name if it has subscribers here, or nil.
func (h *Hub) Channel(name string) *Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.channels[name]
}

// SubscriberCount is how many subscriptions channel name has here.
func (h *Hub) SubscriberCount(name string) int {
	c := h.Channel(name)
	if c == nil {
		return 0
	}
	n := 0
	for i := range c.perLoop {
		n += int(c.perLoop[i].count.Load())
	}
	return n
}

// ChannelNames are the channels held, but for everyone's and what else is the system's own.
func (h *Hub) ChannelNames() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.channels {
		if !wire.IsSystem(name) {
			names = append(names, name)
		}
	}
	return names
}

// ChannelCount is how many channels are held.
func (h *Hub) ChannelCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.channels)
}
