package snapshot

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"switchboard/broker/dialect"
	"switchboard/broker/hub"
	"switchboard/broker/work"
	"switchboard/internal/meter"
	"switchboard/queue"
)

// Queue is the part of the queue that Snapshots calls.
type Queue interface {
	ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage]
}

// Options configures Snapshots. Hub, Queue, Pool and Messages are required.
type Options struct {
	Hub      *hub.Hub
	Queue    Queue
	Pool     *work.Pool
	Messages dialect.Maker // encodes pages
	// Sweeps removes fields that are due. Nil means that only other servers and the janitor do so.
	Sweeps *Sweeps
	// Away is called with the owners of fields that are away, on a worker of the pool. Nil means no
	// call.
	Away    func(channel string, owners []string)
	Bytes   int           // most bytes of all views and held pages, approximately. Zero means DefaultBytes
	Timeout time.Duration // per store call. Zero means 5 s
	Logger  zerolog.Logger
}

// DefaultBytes is the default of Options.Bytes: 64 MiB.
const DefaultBytes = 64 << 20

// unusedTicks is how many ticks a view stays without state subscribers. In this time a client whose
// pages were made must have subscribed.
const unusedTicks = 10

// readAttempts is how often a load reads the state if the hub does not know the messages after it.
const readAttempts = 3

// maxLoads is how often Pages loads a view. The first load may share a read that began before the
// store had the message `from`.
const maxLoads = 2

// errIncomplete means that the hub does not know the messages after the state that was read. The
// hub then reads the channel again.
var errIncomplete = errors.New("the messages after the state are not known yet")

// Snapshots holds the views of the channels with state subscribers. Its methods are safe for
// concurrent use.
type Snapshots struct {
	opts      Options
	deadlines *work.Deadlines
	reads     singleflight.Group // by channel

	mu     sync.Mutex // guards the fields below, and view.element and view.size
	views  map[string]*view
	recent *list.List // of views with fields, the last used first
	bytes  int        // of the views, and of the series that are held
	closed bool
}

// New returns Snapshots without views.
func New(o Options) *Snapshots {
	o.Bytes = cmp.Or(o.Bytes, DefaultBytes)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	return &Snapshots{
		opts: o, deadlines: work.NewDeadlines(o.Timeout), views: make(map[string]*view), recent: list.New(),
	}
}

// Series is a series of pages of one state. The exported fields never change.
type Series struct {
	ID    int64              // of the state; of a channel without messages hub.EmptyID
	Pages []*dialect.Message // at least one

	bytes   int // of the pages
	holders int // calls of Hold without Release. Guarded by Snapshots.mu
}

// Bytes returns the bytes of the fields in the pages. A nil Series has none.
func (s *Series) Bytes() (n int) {
	if s == nil {
		return 0
	}
	for _, page := range s.Pages {
		n += len(page.Event.Fields)
	}
	return n
}

// TryPages is Pages without a store call. It returns false unless the pages are encoded already.
func (s *Snapshots) TryPages(c *hub.Channel, from int64, prefix string) (*Series, bool) {
	v := s.use(c)
	if v == nil {
		return nil, false
	}
	series := v.encoded(from, prefix)
	return series, series != nil
}

// Pages returns the fields with a prefix, as a state whose id is at least from: the cursor of the
// subscription that receives the pages. The id of the series is also not below the position that
// the client has received, which is not 0 in a channel without messages. The subscription must hold
// the channel. Pages may call the store, so do not call it on a loop.
func (s *Snapshots) Pages(ctx context.Context, c *hub.Channel, from int64, prefix string) (*Series, error) {
	v := s.use(c)
	for loads := 0; ; loads++ {
		if v != nil {
			if series := v.pages(from, prefix); series != nil {
				s.count(v)
				return series, nil
			}
		}
		var err error
		if loads == maxLoads {
			err = errIncomplete
		} else {
			v, err = s.load(ctx, c, v)
		}
		if err != nil {
			return nil, fmt.Errorf("state of channel %s: %w", c.Name, err)
		}
	}
}

// Owns reports whether the client owns a field of the channel, as far as this server knows. It
// returns true if there is no view.
func (s *Snapshots) Owns(channel, client string) bool {
	s.mu.Lock()
	v := s.views[channel]
	s.mu.Unlock()
	return v == nil || v.owns(client)
}

// use returns the view of a channel and marks it as used. It returns nil if there is no view with
// fields.
func (s *Snapshots) use(c *hub.Channel) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views[c.Name]
	if v == nil || v.channel != c || v.element == nil {
		return nil
	}
	v.unused.Store(0)
	s.recent.MoveToFront(v.element)
	return v
}

// load reads the state of a channel and returns the new view. unusable is the view that does not
// serve the caller, or nil. If the channel has another view by now, load returns that one.
// Concurrent calls share one read, which counts in the Meter of the first one.
func (s *Snapshots) load(ctx context.Context, c *hub.Channel, unusable *view) (*view, error) {
	wait := s.reads.DoChan(c.Name, func() (any, error) {
		if v := s.use(c); v != nil && v != unusable {
			return v, nil
		}
		return s.read(meter.Of(ctx), c)
	})
	select {
	case r := <-wait:
		v, _ := r.Val.(*view)
		return v, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads the state of a channel and makes a view of it. m counts what is read, and may be nil.
func (s *Snapshots) read(m *meter.Meter, c *hub.Channel) (*view, error) {
	for range readAttempts {
		o := s.opts.Queue.ReadStates(meter.With(s.deadlines.Context(), m), []queue.StateRead{{Channel: c.Name}})[0]
		if o.Err != nil {
			return nil, o.Err
		}
		s.opts.Hub.SetStoreTime(o.Value.Clock)
		v := newView(s, c, o.Value)
		if c.Follow(v, o.Value.ID) {
			s.install(v)
			return v, nil
		}
		c.MarkDirty() // the store may have lost messages, which the hub does not know
	}
	return nil, errIncomplete
}

// reload is load in the background. If it fails, the next tick tries again.
func (s *Snapshots) reload(c *hub.Channel, unusable *view) {
	s.opts.Pool.Go(func() {
		if _, err := s.load(s.deadlines.Context(), c, unusable); err != nil {
			s.opts.Logger.Warn().Err(err).Str("channel", c.Name).Msg("the state is not read; the next tick tries again")
		}
	})
}

// install stores v as the view of its channel, in place of an older one.
func (s *Snapshots) install(v *view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		v.stop()
		return
	}
	if old := s.views[v.channel.Name]; old != nil {
		s.forgetLocked(old)
		old.stop()
	}
	s.views[v.channel.Name] = v
	v.element = s.recent.PushFront(v)
	s.countLocked(v)
	v.reportAllAway()
}

// count counts the bytes of a view again. If the sum exceeds Options.Bytes, it drops the fields of
// the least recently used views.
func (s *Snapshots) count(v *view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked(v)
}

func (s *Snapshots) countLocked(v *view) {
	if v.element == nil {
		return
	}
	size := v.bytes()
	s.bytes += size - v.size
	v.size = size
	for s.bytes > s.opts.Bytes && s.recent.Len() > 1 {
		oldest := s.recent.Back().Value.(*view)
		s.forgetLocked(oldest)
		oldest.dropFields()
	}
}

// forgetLocked stops counting the bytes of a view.
func (s *Snapshots) forgetLocked(v *view) {
	if v.element != nil {
		s.recent.Remove(v.element)
		s.bytes -= v.size
		v.element, v.size = nil, 0
	}
}

// lost is called when v misses messages. The channel may be locked.
func (s *Snapshots) lost(v *view) {
	s.opts.Pool.Go(func() {
		s.mu.Lock()
		current := s.views[v.channel.Name] == v
		if current {
			s.forgetLocked(v)
		}
		s.mu.Unlock()
		if current && v.channel.StateSubscribers() > 0 {
			s.reload(v.channel, v)
		}
	})
}

// Tick does the housekeeping; call it about once a second. It drops unused views, and reads the
// views again that miss messages.
func (s *Snapshots) Tick() {
	s.mu.Lock()
	views := make([]*view, 0, len(s.views))
	for _, v := range s.views {
		views = append(views, v)
	}
	s.mu.Unlock()
	for _, v := range views {
		if v.channel.StateSubscribers() > 0 {
			v.unused.Store(0)
			if v.isLost() {
				s.reload(v.channel, v)
			}
		} else if v.unused.Add(1) > unusedTicks {
			s.remove(v)
			continue
		}
		v.dropOldSeries()
		s.count(v)
	}
}

// remove removes a view.
func (s *Snapshots) remove(v *view) {
	v.channel.Unfollow(v)
	v.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.views[v.channel.Name] == v {
		delete(s.views, v.channel.Name)
		s.forgetLocked(v)
	}
}

// Close drops all views and stops their timers. Sweeps under way end by themselves.
func (s *Snapshots) Close() {
	s.mu.Lock()
	s.closed = true
	views := s.views
	s.views = nil
	s.mu.Unlock()
	for _, v := range views {
		v.channel.Unfollow(v)
		v.stop()
	}
}
