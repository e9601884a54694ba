package client

import (
	"sync"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// view is the client's copy of the fields of one channel. It outlives connections. Only deliver
// changes the fields, so that a callback sees the fields as of its message.
type view struct {
	channel string
	prefix  string

	mu       sync.Mutex // guards the fields below
	follower state.Follower
	shown    *state.Map // the last complete map; nil before the first one
	clock    storeClock
}

// page applies a page. It returns true if it is the last one of its series.
func (v *view) page(id int64, more bool, ev *wire.StateEvent) (complete bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.follower.Page(id, more, ev); err != nil {
		v.follower = state.Follower{} // ignores the other pages of the series
		return false, err
	}
	v.clock.observe(id)
	if more || !v.follower.Held() {
		return false, nil
	}
	v.shown = v.follower.Map()
	return true, nil
}

// message applies the changes of a message. It returns them if they have changed the complete map.
func (v *view) message(id int64, ev *wire.StateEvent) *Changes {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock.observe(id)
	before := v.follower.Map().ID
	v.follower.Message(id, ev)
	if !v.follower.Held() || id <= before {
		return nil
	}
	return changesOf(ev)
}

// setPosition notes the position of a new subscription. reset says that it does not continue the
// earlier one: the ids may come from another store, with another clock.
func (v *view) setPosition(id int64, reset bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if reset {
		v.clock = storeClock{}
	}
	v.clock.observe(id)
}

func (v *view) snapshot() (Snapshot, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shown == nil {
		return Snapshot{}, false
	}
	s := Snapshot{Channel: v.channel, ID: v.shown.ID, Fields: make(map[string]Field, len(v.shown.Fields))}
	now := v.clock.now()
	for name, f := range v.shown.Fields {
		if isLive(f, now) {
			s.Fields[name] = fieldOf(f)
		}
	}
	return s, true
}

func (v *view) field(name string) (Field, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shown == nil {
		return Field{}, false
	}
	f, found := v.shown.Fields[name]
	if !found || !isLive(f, v.clock.now()) {
		return Field{}, false
	}
	return fieldOf(f), true
}

func isLive(f state.Shown, now int64) bool { return f.Until == 0 || f.Until > now }

const (
	idsPerMS = 4096
	epochMS  = 1577836800000 // 2020-01-01, Unix ms: the time of the id 0
)

// storeClock is a lower bound of the store's clock. It is the time of the newest id, plus the time
// since that id arrived: the client's own clock may be wrong, and is not used. The bound is low
// by the age that the id had when it arrived. So a field is not hidden too early, as long as
// the message that prolongs its lease does not take longer than the fastest one before it.
type storeClock struct {
	ms int64     // Unix ms; 0 if no id is known
	at time.Time // when ms was set
}

func (c *storeClock) now() int64 {
	if c.ms == 0 {
		return 0
	}
	return c.ms + time.Since(c.at).Milliseconds()
}

// observe notes that the message with the id is stored.
func (c *storeClock) observe(id int64) {
	if ms := epochMS + id/idsPerMS; ms > c.now() {
		c.ms, c.at = ms, time.Now()
	}
}
