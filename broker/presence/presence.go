package presence

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
	"switchboard/broker/peer"
	"switchboard/broker/work"
	"switchboard/registry"
)

// Store is what presence needs of the registry.
type Store interface {
	ChangePresence(ctx context.Context, server string, changes []registry.RosterChange) []registry.RosterOutcome
	Roster(ctx context.Context, server, channel string) (registry.Roster, error)
	WatchPresence(ctx context.Context, server, channel string) error
	UnwatchPresence(ctx context.Context, server, channel string) error
	ChannelServers(ctx context.Context, channel string) ([]string, error)
	RosterPage(ctx context.Context, server, channel, cursor string, limit int) ([]registry.Member, string, error)
	RosterSizes(ctx context.Context, channel string, servers []string) ([]int, error)
	Lease(ctx context.Context, server string) (registry.Server, bool, error)
	User(ctx context.Context, user string) ([]registry.Binding, error)
	UnbindChannel(ctx context.Context, server, channel string) error
	Buried(ctx context.Context, server string) (bool, error)
}

// Options configures a Presence. All fields up to Members are required.
type Options struct {
	Store      Store
	Pool       *work.Pool
	Loops      []*loop.Loop
	Messages   dialect.Maker                          // encodes joins and leaves
	ServerID   func() string                          // changes when the server was declared dead and came back
	HoldsLease func() bool                            // this server's lease cannot have ended
	Notify     func(server string, h peer.Hint)       // a hint for another server; it may be lost
	Hold       func(channel string) func()            // keeps the channel bound until what it returns is called
	Members    func(channel string) []registry.Member // those on this server; not called from a loop
	// Large is the number of clients above which a channel's changes are told together, once a second. Zero means 200.
	LargeChannel int
	// Grace is how many seconds a user may be away without being called offline. Zero means 5.
	Grace   int
	Timeout time.Duration // of one call to the store. Zero means 5 s
	Logger  zerolog.Logger
}

// Presence is one server's part in who is where.
type Presence struct {
	opts Options
	live atomic.Pointer[map[string]bool]

	counts userCounts

	mu            sync.Mutex // guards the fields below
	pending       map[string]*pendingRoster
	due           []*pendingRoster // rosters to be written, in the order they came; none twice
	writing       bool             // a job writes them, or has just done so
	coalesceTimer *time.Timer      // behind a job, while it has just done so
	noCoalescing  bool             // there is no pause any more
	views         map[string]*View
	users         map[string]*UserView
}

// New returns a Presence of nobody.
func New(opts Options) *Presence {
	opts.LargeChannel = cmp.Or(opts.LargeChannel, 200)
	opts.Grace = cmp.Or(opts.Grace, 5)
	opts.Timeout = cmp.Or(opts.Timeout, 5*time.Second)
	p := &Presence{opts: opts, pending: map[string]*pendingRoster{}, views: map[string]*View{}, users: map[string]*UserView{}}
	p.live.Store(&map[string]bool{})
	return p
}

func (p *Presence) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), p.opts.Timeout)
}

// SetLive says which servers have a lease, this one among them.
func (p *Presence) SetLive(live map[string]bool) {
	before := *p.live.Swap(&live)
	var born []string
	for id := range live {
		if !before[id] {
			born = append(born, id)
		}
	}
	died := false
	for id := range before {
		died = died || !live[id]
	}
	if !died && len(born) == 0 {
		return
	}
	p.liveChanged(born)
}

// liveChanged has what is followed take over which servers are there; born are new among them.
func (p *Presence) liveChanged(born []string) {
	for _, v := range p.allViews() {
		v.dropDeadServers()
		v.markDirty(born...)
	}
	for _, v := range p.allUsers() {
		v.markDirty()
	}
}

// giveUp takes servers for dead until SetLive says that they are not.
func (p *Presence) markDead(servers []string) {
	for {
		before := p.live.Load()
		after := maps.Clone(*before)
		for _, id := range servers {
			delete(after, id)
		}
		if p.live.CompareAndSwap(before, &after) {
			p.liveChanged(nil)
			return
		}
	}
}

func (p *Presence) isLive(server string) bool { return (*p.live.Load())[server] }

// MarkAllDirty says that hints may have been lost: all that is followed is read again.
func (p *Presence) MarkAllDirty() {
	for _, v := range p.allViews() {
		v.markAllDirty()
	}
	for _, v := range p.allUsers() {
		v.markDirty()
	}
}

// Resync writes again what the store should know of the channels with clients here, and reads what is followed: the store, or
// this server, was believed dead. It does not wait for it.
func (p *Presence) Resync(channels []string) {
	p.mu.Lock()
	for _, channel := range channels {
		w := p.pendingLocked(channel)
		w.rewrite, w.changes = true, nil
	}
	p.mu.Unlock()
	for _, v := range p.allViews() {
		v.watchAndReread()
	}
	for _, v := range p.allUsers() {
		v.markDirty()
	}
}

// Tick is the housekeeping, once a second: what failed is tried again, large channels are told of, and views that nobody
// needs are given up.
func (p *Presence) Tick() {
	p.retry()
	for _, v := range p.allViews() {
		v.tick()
	}
	for _, v := range p.allUsers() {
		v.tick()
	}
}

// Hint takes another server's hint that a roster has changed.
func (p *Presence) Hint(h peer.Hint) {
	u, ok := decode(h)
	if !ok {
		p.MarkAllDirty() // whatever it was
		return
	}
	p.apply(h.Name, u)
}

func (p *Presence) apply(channel string, u rosterUpdate) {
	p.mu.Lock()
	v := p.views[channel]
	p.mu.Unlock()
	if v != nil {
		v.apply(u)
	}
}

func (p *Presence) allViews() []*View {
	p.mu.Lock()
	defer p.mu.Unlock()
	views := make([]*View, 0, len(p.views))
	for _, v := range p.views {
		views = append(views, v)
	}
	return views
}
