package presence

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
	"switchboard/broker/peer"
	"switchboard/broker/work"
	"switchboard/internal/setting"
	"switchboard/internal/slots"
	"switchboard/registry"
)

// Store is the part of the registry that presence calls.
type Store interface {
	ChangePresence(ctx context.Context, server string, changes []registry.RosterChange) []registry.RosterOutcome
	Roster(ctx context.Context, server, channel string) (registry.Roster, error)
	RosterVersions(ctx context.Context, server string, channels []string) ([]int64, error)
	HeldCounts(ctx context.Context, server string) (channels, clients int, err error)
	HoldsChannels(ctx context.Context, server string, channels []string) ([]bool, error)
	ClientPage(ctx context.Context, server, cursor string, limit int) (clients []string, next string, err error)
	WatchPresence(ctx context.Context, server, channel string) error
	UnwatchPresence(ctx context.Context, server, channel string) error
	ChannelServers(ctx context.Context, channel string) ([]string, error)
	RosterPage(ctx context.Context, server, channel, cursor string, limit int) ([]registry.Member, string, error)
	RosterHas(ctx context.Context, server, channel string, clients []string) ([]bool, error)
	RosterSizes(ctx context.Context, channel string, servers []string) ([]int, error)
	Lease(ctx context.Context, server string) (registry.Server, bool, error)
	User(ctx context.Context, user string) ([]registry.Binding, error)
	Users(ctx context.Context, users []string) ([][]registry.Binding, error)
	WatchUsers(ctx context.Context, server string, users []string) []registry.WatchOutcome
	UnwatchUsers(ctx context.Context, list []registry.UserWatch) error
	UnbindChannel(ctx context.Context, server, channel string) error
	DeclaredDead(ctx context.Context, server string) (bool, error)
}

// Options configures a Presence. All fields up to Members are required.
type Options struct {
	Store      Store
	Pool       *work.Pool
	Loops      []*loop.Loop
	Messages   dialect.Maker                          // encodes joins and leaves
	ServerID   func() string                          // may change: a server that was declared dead comes back under a new id
	HoldsLease func() bool                            // reports that this server's lease cannot have ended
	Notify     func(server string, h peer.Hint)       // sends a hint to another server; it may be lost
	Hold       func(channel string) func()            // keeps the channel bound until the returned function is called
	Members    func(channel string) []registry.Member // the channel's members on this server; not called on a loop
	// Uncertain is called with the channel of a write of a roster or of the watchers that failed: the
	// store may execute it after later ones. Nil means no call.
	Uncertain func(channel string)
	// AliasField returns the field of a channel with what a user's clients are shown as, or "" if
	// clients are shown by their ids. Nil means that all are.
	AliasField func(channel, user string) string
	// Fields answers reads, all at once. It is required if there is an AliasField.
	Fields func(ctx context.Context, reads []FieldRead)
	ChannelLimits
	// Master returns a number for the part of the store that has what belongs to a channel, a user or
	// a server. A part that does not answer delays the comparison of no other one. Nil means that
	// there is one part.
	Master func(name string) int
	// Renewal is how often this server registers again as watching a user. Zero means 30 min.
	Renewal time.Duration
	// HasFormer reports whether servers may be live that do not know which servers watch a user. They
	// learn only from this server's next beats that it watches users. Nil means that there are none.
	HasFormer func() bool
	// Grace is how many seconds a user may be away before going offline. Zero means 5.
	Grace   int
	Timeout time.Duration // per store call. Zero means 5 s
	Logger  zerolog.Logger
}

// ChannelLimits bounds what a channel sends. Zero means the default in a field's tag.
type ChannelLimits struct {
	// LargeChannel is the number of clients above which a channel's changes are coalesced to one
	// event per second, and no here values are sent.
	LargeChannel int `setting:"limits.presence" default:"200" help:"members of a channel above which presence sends its changes in batches, once a\nsecond, and here is refused"`
}

// Presence writes this server's rosters and keeps the views that its watchers need.
type Presence struct {
	opts Options
	live atomic.Pointer[map[string]bool] // servers that hold a lease, by id; never changed in place

	counts  userCounts
	here    hereTable
	aliases aliasTable

	comparisons work.Retries[string] // servers with whose entries the views could not be compared

	mu            sync.Mutex                // guards the fields below
	pending       map[string]*pendingRoster // rosters that differ from the store's, by channel
	due           []*pendingRoster          // rosters to write, first in first out; each at most once
	writing       bool                      // a write job is queued, is running or waits for coalesceTimer
	coalesceTimer *time.Timer               // runs between two write jobs
	noCoalescing  bool                      // StopCoalescing was called
	views         map[string]*View
	users         map[string]*UserView
	unwatched     []registry.UserWatch // registrations to remove
}

// New returns a Presence without members and watchers.
func New(opts Options) *Presence {
	setting.Fill(&opts.ChannelLimits)
	opts.Grace = cmp.Or(opts.Grace, 5)
	opts.Renewal = cmp.Or(opts.Renewal, 30*time.Minute)
	if opts.HasFormer == nil {
		opts.HasFormer = func() bool { return false }
	}
	if opts.Uncertain == nil {
		opts.Uncertain = func(string) {}
	}
	opts.Timeout = cmp.Or(opts.Timeout, 5*time.Second)
	p := &Presence{opts: opts, pending: map[string]*pendingRoster{}, views: map[string]*View{}, users: map[string]*UserView{}}
	p.here.began = time.Now()
	p.live.Store(&map[string]bool{})
	return p
}

func (p *Presence) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), p.opts.Timeout)
}

// SetLive sets which servers hold a lease, including this one.
func (p *Presence) SetLive(live map[string]bool) {
	before := *p.live.Swap(&live)
	var started, ended []string
	for id := range live {
		if !before[id] {
			started = append(started, id)
		}
	}
	for id := range before {
		if !live[id] {
			ended = append(ended, id)
		}
	}
	p.liveChanged(started, ended)
}

// liveChanged updates the views after the set of live servers has changed. Only those are read
// again that have something of the servers that started or ended. A server that starts may already
// have sent updates, which its views have ignored.
func (p *Presence) liveChanged(started, ended []string) {
	if len(started)+len(ended) == 0 {
		return
	}
	if len(ended) > 0 {
		for _, v := range p.allViews() {
			v.dropDeadServers()
		}
	}
	changed := slices.Concat(started, ended)
	for _, v := range p.allUserViews() {
		v.markDirtyIfOn(changed)
	}
	if len(started) > 0 {
		p.compareLater(started)
	}
}

// markDead treats the servers as dead until the next SetLive.
func (p *Presence) markDead(servers []string) {
	for {
		before := p.live.Load()
		after := maps.Clone(*before)
		for _, id := range servers {
			delete(after, id)
		}
		if p.live.CompareAndSwap(before, &after) {
			p.liveChanged(nil, servers)
			return
		}
	}
}

// isLive reports whether the server holds a lease, as far as this server knows.
func (p *Presence) isLive(server string) bool { return (*p.live.Load())[server] }

// Resync compares the rosters of the channels with the store, writes those that differ, and reads
// the views of the channels again. Call it when the store may have lost them, or when this server
// has a new id because it was declared dead. restored are those of the channels whose servers had
// lacked this one: others have perhaps read them meanwhile, so their rosters are published even if
// they do not differ. Resync does not wait for the result.
func (p *Presence) Resync(channels, restored []string) {
	p.mu.Lock()
	var views []*View
	for _, channel := range channels {
		r := p.pendingLocked(channel)
		if r.compare(); slices.Contains(restored, channel) {
			r.equal = false
		}
		if v := p.views[channel]; v != nil {
			views = append(views, v)
		}
	}
	p.mu.Unlock()
	for _, v := range views {
		v.watchAndReread()
	}
}

// rewriteRosters has the rosters of the channels written again.
func (p *Presence) rewriteRosters(channels []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, channel := range channels {
		r := p.pendingLocked(channel)
		r.rewrite, r.equal, r.changes = true, false, nil
	}
}

// ResyncUsers registers this server again as watching the users in the slots, and reads their views
// again. Call it when the store may have lost the registrations, or when this server has a new id.
func (p *Presence) ResyncUsers(of *slots.Set) {
	for _, v := range p.allUserViews() {
		if of.HasName(v.user) {
			v.watchAgain()
		}
	}
}

// Tick does the housekeeping; call it once a second. It retries what failed, publishes the changes
// of large channels and removes unused views.
func (p *Presence) Tick() {
	p.retry()
	p.retryComparisons()
	for _, v := range p.allViews() {
		v.tick()
	}
	p.tickUsers()
	p.tickHere()
}

// Hint applies another server's hint of kind peer.Presence or peer.Here.
func (p *Presence) Hint(h peer.Hint) {
	if h.Kind == peer.Here {
		p.receiveHere(h)
		return
	}
	u, ok := decode(h)
	v := p.view(h.Name)
	switch {
	case v == nil:
	case !ok:
		v.markAllDirty() // the hint is not readable
	default:
		v.apply(u)
	}
}

func (p *Presence) apply(channel string, u rosterUpdate) {
	if v := p.view(channel); v != nil {
		v.apply(u)
	}
}

// view returns the view of a channel, nil if there is none.
func (p *Presence) view(channel string) *View {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.views[channel]
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
