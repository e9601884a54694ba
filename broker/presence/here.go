package presence

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/broker/dialect"
	"switchboard/registry"
)

const (
	// MaxHere is the most bytes of a here value.
	MaxHere = 1 << 10
	// hereInterval is the pause between two sends of a channel's values. The values that are set
	// meanwhile go out in one batch, of each client the newest.
	hereInterval = 50 * time.Millisecond
	// hereResend is how many ticks pass between two sends of values that have not changed.
	hereResend = 5
	// hereTTL is how long a value of another server lives without being sent again. An ended value
	// is remembered as long, and so is the size of a channel.
	hereTTL = 15 * time.Second
)

// hereTable holds the channels with here values.
type hereTable struct {
	count atomic.Int32 // of channels: joins and leaves check only this
	seq   atomic.Int64 // grows with each change that watchers receive, in any channel
	began time.Time    // when the clock began

	mu       sync.Mutex // guards the field below; it is locked last
	channels map[string]*hereChannel
}

// hereChannel holds the here values of one channel: those of this server's clients, and those that
// other servers have sent.
type hereChannel struct {
	p    *Presence
	name string

	mu      sync.Mutex            // guards the fields below; View.mu is locked before it
	values  map[string]*hereValue // by client
	removed bool                  // it is no longer in the table

	holders map[string]hereHolder // the clients that have set the values of aliases; nil for none

	unsent     []*hereValue // values of this server's clients that changed since the last send
	newServers []string     // other servers that had no members at the last send: they get all values
	timer      *time.Timer  // calls sendHere; nil before the first use
	due        time.Time    // when timer fires; zero if it is stopped
	lastSend   time.Time

	loaded  time.Time // when the two fields below were read; zero for never
	clients int       // number of members
	servers []string  // the other servers that have members

	ticks int
}

// hereHolder is the connection that has set the value of an alias.
type hereHolder struct {
	client     string
	generation int64
}

// hereValue is the newest known value of one client, or of one alias, in one channel. Generation
// and number order the values of a client, wherever it is connected.
type hereValue struct {
	client     string
	generation int64         // of the client's binding; registry.AliasGeneration for an alias
	number     int64         // grows with each value that is sent, also after an end
	data       []byte        // compact JSON; nil if the value has ended
	refreshed  time.Duration // when it was last sent or received, on the clock of hereTable
	local      bool          // the client is connected to this server

	unsent bool   // it is in hereChannel.unsent
	next   []byte // if unsent: the data to be sent; nil for an end

	// The last change that the watchers of this server receive. All are zero if there is none.
	shown   bool             // the watchers have the value
	seq     int64            // of the change
	message *dialect.Message // the change
}

// now returns the time on the clock of the table.
func (t *hereTable) now() time.Duration { return time.Since(t.began) }

// findHere returns the values of a channel, or nil. If create is true, it creates them.
func (p *Presence) findHere(channel string, create bool) *hereChannel {
	t := &p.here
	if !create && t.count.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.channels[channel]
	if h == nil && create {
		if t.channels == nil {
			t.channels = map[string]*hereChannel{}
		}
		h = &hereChannel{p: p, name: channel, values: map[string]*hereValue{}}
		t.channels[channel] = h
		t.count.Add(1)
	}
	return h
}

// lockHere is findHere, and also locks the values.
func (p *Presence) lockHere(channel string, create bool) *hereChannel {
	for {
		h := p.findHere(channel, create)
		if h == nil {
			return nil
		}
		h.mu.Lock()
		if !h.removed {
			return h
		}
		h.mu.Unlock()
	}
}

// lockHereAndView locks the channel's view and its values. The view is nil if the channel has no
// watchers on this server.
func (p *Presence) lockHereAndView(channel string, create bool) (h *hereChannel, v *View) {
	p.mu.Lock()
	v = p.views[channel]
	p.mu.Unlock()
	if v != nil {
		v.mu.Lock()
	}
	if h = p.lockHere(channel, create); h == nil && v != nil {
		v.mu.Unlock()
		v = nil
	}
	return h, v
}

// unlockHere undoes lockHereAndView.
func unlockHere(h *hereChannel, v *View) {
	h.mu.Unlock()
	if v != nil {
		v.mu.Unlock()
	}
}

// maxValues bounds the values of one channel, ended ones included. It is above LargeChannel because
// the values of clients that have left stay for hereTTL.
func (h *hereChannel) maxValues() int { return 4 * h.p.opts.LargeChannel }

// removeIfUnusedLocked removes a channel without values from the table.
func (h *hereChannel) removeIfUnusedLocked() {
	if len(h.values) > 0 || !h.due.IsZero() || time.Since(h.loaded) < hereTTL {
		return
	}
	h.removed = true
	t := &h.p.here
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.channels, h.name)
	t.count.Add(-1)
}

// olderThan reports whether a value with the given generation and number replaces v.
func (v *hereValue) olderThan(generation, number int64) bool {
	return v.generation < generation || v.generation == generation && v.number < number
}

// hereOf returns the members' values, in the order of the members. It is nil if there are none. If
// shownOnly is true, it leaves out values that the watchers on this server do not have yet.
func (p *Presence) hereOf(channel string, members []registry.Member, shownOnly bool) []json.RawMessage {
	h := p.lockHere(channel, false)
	if h == nil {
		return nil
	}
	defer h.mu.Unlock()
	var list []json.RawMessage
	for i, m := range members {
		if v := h.values[m.Client]; v != nil && v.data != nil && v.generation >= m.Generation && (v.shown || !shownOnly) {
			if list == nil {
				list = make([]json.RawMessage, len(members))
			}
			list[i] = v.data
		}
	}
	return list
}
