package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
	"switchboard/broker/work"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// Registry is the part of the registry that the hub calls.
type Registry interface {
	BindChannel(ctx context.Context, server, channel string) error
	BindChannels(ctx context.Context, server string, channels []string) []error
	RebindChannels(ctx context.Context, server string, channels []string, list func(channel string) bool) (restored []string, errs []error)
	UnbindChannel(ctx context.Context, server, channel string) error
	HoldChannels(ctx context.Context, server string, channels []string) error
	ListChannels(ctx context.Context, server string, channels []string) error
}

// Queue is the part of the queue that the hub calls.
type Queue interface {
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error)
	ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page]
	ChannelHeads(ctx context.Context, known []queue.ChannelKnown) []queue.Outcome[queue.ChannelHead]
	KeepPositions(ctx context.Context, channels []string) error
}

// Options configures a Hub. All fields up to ServerID are required.
type Options struct {
	Loops    []*loop.Loop
	Pool     *work.Pool
	Registry Registry
	Queue    Queue
	Messages dialect.Maker // encodes messages
	ServerID func() string // may change: a server that was declared dead comes back under a new id
	Timeout  time.Duration // per store call. Zero means 5 s
	// PositionTTL is how long the store remembers the position of a channel without messages. The
	// hub refreshes the positions of its channels in time. Zero means without limit.
	PositionTTL time.Duration
	Logger      zerolog.Logger
	// Master returns a number for the part of the store that has the queue of a channel. A part that
	// does not answer delays the comparison of no other one. Nil means that there is one part.
	Master  func(channel string) int
	Drained func(lag time.Duration) // called after each drain; lag is the time since the drain was queued
	// Lost is called when the store no longer has a message that it had.
	Lost func(channel string, id int64)
	// Uncertain is called with a channel whose unbinding has an unknown outcome. Nil means no call.
	Uncertain func(channel string)
	// Changed is called with each new change of a channel's state, and with nil if changes may have
	// been missed. The channel is locked: Changed must not block or call the hub. Nil means that it
	// is not called.
	Changed func(channel string, e *state.Entry)
}

// Hub holds the channels that have subscribers on this server.
type Hub struct {
	opts      Options
	began     time.Time
	pageReads singleflight.Group
	lastPage  atomic.Pointer[readPage] // the newest page; nil if none was read since the last tick
	loops     []loopState              // by loop.Index
	scratch   []sharedBatches          // by loop.Index; owned by the loop

	drains, comparisons work.Retries[string] // channels whose last read, or comparison, failed

	watches   watches
	deadlines *work.Deadlines
	positions positionRefresh
	clock     storeClock

	mu       sync.Mutex // guards the fields below, and every Channel.refs
	channels map[string]*Channel
	unused   map[*Channel]struct{} // channels without references

	channelCount int // len(channels) without system channels

	tailsMu     sync.Mutex // guards filledTails
	filledTails []*Channel // channels whose tail has messages
}

// loopState is the state of one loop. Other goroutines read its numbers.
type loopState struct {
	lagging       map[*Subscription]struct{} // subscriptions that deliver skips; owned by the loop
	laggingCount  atomic.Int32               // len(lagging)
	subscriptions atomic.Int64               // active ones, without system channels
}

// countSubscription adds n to the number of subscriptions.
func (l *loopState) countSubscription(c *Channel, n int64) {
	if !wire.IsSystem(c.Name) {
		l.subscriptions.Add(n)
	}
}

// New returns a Hub without channels.
func New(opts Options) *Hub {
	if opts.Timeout == 0 {
		opts.Timeout = 5 * time.Second
	}
	if opts.Drained == nil {
		opts.Drained = func(time.Duration) {}
	}
	if opts.Uncertain == nil {
		opts.Uncertain = func(string) {}
	}
	if opts.Lost == nil {
		opts.Lost = func(string, int64) {}
	}
	h := &Hub{
		opts: opts, began: time.Now(), channels: make(map[string]*Channel), unused: make(map[*Channel]struct{}),
		deadlines: work.NewDeadlines(opts.Timeout),
		positions: positionRefresh{allAt: time.Now(), recentAt: time.Now()},
	}
	h.loops, h.scratch = make([]loopState, len(opts.Loops)), make([]sharedBatches, len(opts.Loops))
	for i := range h.loops {
		h.loops[i].lagging = make(map[*Subscription]struct{})
		h.scratch[i].reset(-1, nil)
	}
	return h
}

// context returns a context with the store timeout. Calls share it, so nothing cancels it.
func (h *Hub) context() context.Context { return h.deadlines.Context() }

// Position is the place in a channel where a subscription begins.
type Position struct {
	Channel   *Channel
	Cursor    int64
	Recovered bool  // the subscriber receives every message after the last one that it has seen
	ResumeID  int64 // the id that the client receives and resumes with: Cursor, unless the channel is empty
}

// Acquire binds the channel to this server and returns the position of a new subscription. after is
// the last id that the subscriber has seen, or nil. Acquire calls the store, so do not call it on a
// loop. Pass each Position once, to Subscribe or to Release.
func (h *Hub) Acquire(ctx context.Context, name string, after *int64) (Position, error) {
	c := h.getOrCreate(name)
	pos, err := c.acquire(ctx, after)
	if err == nil && after != nil && !pos.Recovered {
		// If this was the server's first read, it has set the clock. ResumeCursor needs the clock to
		// recognize a position in an empty channel, so try again.
		if cursor := h.ResumeCursor(after); *cursor != *after {
			pos, err = c.acquire(ctx, cursor)
		}
	}
	if err != nil {
		h.Release(c)
		return Position{}, err
	}
	pos.ResumeID = h.resumeID(c, pos.Cursor)
	return pos, nil
}

// TryAcquire is Acquire without a store call. It returns false if the store is needed.
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
		pos.Cursor, pos.Recovered = *after, *after >= t.lastMarker
	}
	pos.ResumeID = h.resumeID(c, pos.Cursor)
	h.addRefLocked(c)
	return pos, true
}

// getOrCreate returns the channel with one more reference. It creates the channel if needed.
func (h *Hub) getOrCreate(name string) *Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[name]
	if c == nil {
		c = &Channel{Name: name, hub: h, bindLock: make(chan struct{}, 1), perLoop: make([]loopSubscribers, len(h.opts.Loops))}
		c.tail.Store(new(tail))
		h.channels[name] = c
		h.countChannelLocked(c, 1)
	}
	h.addRefLocked(c)
	return c
}

// countChannelLocked adds n to the number of channels.
func (h *Hub) countChannelLocked(c *Channel, n int) {
	if !wire.IsSystem(c.Name) {
		h.channelCount += n
	}
}

func (h *Hub) addRefLocked(c *Channel) {
	if c.refs++; c.refs == 1 {
		delete(h.unused, c)
	}
}

// Hold prevents the unbinding of the channel until release is called. It does not bind the channel.
func (h *Hub) Hold(name string) (release func()) {
	c := h.getOrCreate(name)
	return func() { h.Release(c) }
}

// EachSubscriber calls visit for each subscriber of a channel on this server, on the subscriber's
// loop, and waits for all calls. Do not call it on a loop.
func (h *Hub) EachSubscriber(name string, visit func(Subscriber)) {
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
				visit(sub.to)
			}
		})
	}
	wg.Wait()
}

// Release gives up a reference that Acquire or Hold took. The channel stays until the next tick,
// for clients that come back at once.
func (h *Hub) Release(c *Channel) {
	h.mu.Lock()
	if c.refs--; c.refs == 0 {
		h.unused[c] = struct{}{}
	}
	h.mu.Unlock()
}

// Subscribe sets s, which must be reusable, to a new subscription that begins at pos. It runs on l,
// the subscriber's loop. The caller then answers the client and calls Start.
func (h *Hub) Subscribe(s *Subscription, l *loop.Loop, to Subscriber, pos Position) {
	list := &pos.Channel.perLoop[l.Index]
	*s = Subscription{Channel: pos.Channel, to: to, loop: uint16(l.Index), cursor: pos.Cursor, index: int32(len(list.subs))}
	s.markLagging() // until Start: deliver must not overtake the answer to the client
	list.subs = append(list.subs, s)
	list.count.Store(int32(len(list.subs)))
	h.loops[l.Index].countSubscription(s.Channel, 1)
}

// Start begins the delivery of the messages after the cursor, or continues it if s was held.
func (s *Subscription) Start() {
	s.flags &^= held
	s.catchUp()
}

// Unsubscribe ends a subscription, on its loop. It does nothing if the subscription is not active.
func (h *Hub) Unsubscribe(s *Subscription) {
	if !s.Active() {
		return
	}
	s.clearLagging()
	s.Channel.releaseFilter(s.filter)
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
	h.loops[s.loop].countSubscription(s.Channel, -1)
	h.Release(s.Channel)
}

// Channel returns the channel of that name, or nil if the hub does not hold it.
func (h *Hub) Channel(name string) *Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.channels[name]
}

// SubscriberCount returns how many subscriptions the channel has on this server.
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

// SubscriptionCount returns how many subscriptions all channels have on this server, without those
// of system channels such as wire.AllChannel.
func (h *Hub) SubscriptionCount() (n int64) {
	for i := range h.loops {
		n += h.loops[i].subscriptions.Load()
	}
	return n
}

// ChannelNames returns the names of the channels, without system channels such as wire.AllChannel.
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

// ChannelCount returns the number of ChannelNames.
func (h *Hub) ChannelCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.channelCount
}
