package client

import (
	"sync"

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
}

// page applies a page. It returns true if it is the last one of its series.
func (v *view) page(id int64, more bool, ev *wire.StateEvent) (complete bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.follower.Page(id, more, ev); err != nil {
		v.follower = state.Follower{} // ignores the other pages of the series
		return false, err
	}
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
	before := v.follower.Map().ID
	v.follower.Message(id, ev)
	if !v.follower.Held() || id <= before {
		return nil
	}
	return changesOf(ev)
}

func (v *view) snapshot() (Snapshot, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shown == nil {
		return Snapshot{}, false
	}
	s := Snapshot{Channel: v.channel, ID: v.shown.ID, Fields: make(map[string]Field, len(v.shown.Fields))}
	for name, f := range v.shown.Fields {
		s.Fields[name] = fieldOf(f)
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
	return fieldOf(f), found
}
