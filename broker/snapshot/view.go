package snapshot

import (
	"container/list"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/broker/dialect"
	"switchboard/broker/hub"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// fieldBytes is about how many bytes a field takes in memory besides its name and its value.
const fieldBytes = 96

// view is the state of one channel. It implements hub.Follower.
type view struct {
	s       *Snapshots
	channel *hub.Channel
	element *list.Element // in s.recent; nil if the view has no fields. Guarded by s.mu
	size    int           // bytes counted in s.bytes. Guarded by s.mu
	unused  atomic.Int32  // ticks without state subscribers

	mu         sync.Mutex   // guards the fields below
	id         int64        // of the last message that is applied; 0 if the channel has none
	readAt     int64        // when the store was read, Unix ms
	fields     *state.Table // nil if they were dropped to save memory, or if the view is lost
	lost       bool         // messages are missing
	fieldsSize int          // bytes of the fields; -1 if they have changed since it was computed
	series     map[string]*cached
	owners     map[string]struct{} // clients that own fields; nil if not known

	// due is not later than the time at which the first field ends. 0 means that no field ends.
	due int64
	// keepUntil is not later than the time at which all fields end because the state is not written.
	// -1 means never, and 0 that the store was not asked while there were fields.
	keepUntil int64
	timer     *time.Timer // nil for none
	firesAt   int64       // on the store's clock; 0 if the timer does not run
	stopped   bool
}

// cached is a series of pages with one prefix.
type cached struct {
	*Series
	due int64 // until when pages without an id of a message can be used; 0 if they have one
	old bool  // no subscriber used it since the last tick
}

// newView returns a view of a state that was read from the store.
func newView(s *Snapshots, c *hub.Channel, page queue.StatePage) *view {
	v := &view{
		s: s, channel: c, id: page.ID, readAt: s.opts.Hub.StoreTime(), due: page.Due, keepUntil: page.KeepUntil, fieldsSize: -1,
		fields: state.NewTable(page.ID, len(page.Fields)), series: make(map[string]*cached),
	}
	for _, f := range page.Fields {
		v.fields.Add(f.Name, f.Show())
	}
	return v
}

// Append implements hub.Follower.
func (v *view) Append(messages []*dialect.Message) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range messages {
		switch {
		case v.lost:
			return
		case m.Event != nil, m.Changes != nil && m.Changes.Entry == nil: // a loss marker, or an entry that cannot be read
			v.loseLocked()
			return
		case m.Changes != nil:
			v.applyLocked(m.ID, m.Changes.Entry)
		}
		v.id = max(v.id, m.ID)
	}
	v.armLocked()
}

// applyLocked applies an entry of the log.
func (v *view) applyLocked(id int64, e *state.Entry) {
	for _, ends := range []map[string]int64{e.Until, e.Away} {
		for _, end := range ends {
			if end > 0 && (v.due == 0 || end < v.due) {
				v.due = end
			}
		}
	}
	if v.fields != nil {
		v.fields.Apply(id, e)
		v.fieldsSize = -1
	}
	v.limitKeepLocked(id)
	v.limitDueLocked()
	if v.fields == nil {
		return
	}
	if len(e.Away) > 0 {
		v.reportAwayLocked(maps.Keys(e.Away))
	}
	if e.Cleared || len(e.Gone)+len(e.Del)+len(e.Own) > 0 {
		v.owners = nil
	}
}

// limitDueLocked makes due no later than the end of the whole state.
func (v *view) limitDueLocked() {
	if v.keepUntil > 0 && (v.fields == nil || v.fields.Len() > 0) && (v.due == 0 || v.keepUntil < v.due) {
		v.due = v.keepUntil
	}
}

// reportAllAway calls Options.Away with the owners of all fields that are away.
func (v *view) reportAllAway() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fields != nil {
		v.reportAwayLocked(v.fields.Names())
	}
}

// reportAwayLocked calls Options.Away with the owners of those of the fields that are away.
func (v *view) reportAwayLocked(fields iter.Seq[string]) {
	away := v.s.opts.Away
	if away == nil {
		return
	}
	owners := make(map[string]struct{})
	for name := range fields {
		if f, _ := v.fields.Get(name); f.Away {
			for _, owner := range f.Owners {
				owners[owner] = struct{}{}
			}
		}
	}
	if len(owners) > 0 {
		list := slices.Sorted(maps.Keys(owners))
		v.s.opts.Pool.Go(func() { away(v.channel.Name, list) })
	}
}

// Lost implements hub.Follower.
func (v *view) Lost() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.loseLocked()
}

func (v *view) loseLocked() {
	if !v.lost {
		v.lost = true
		v.dropFieldsLocked()
		v.stopLocked()
		v.s.lost(v)
	}
}

func (v *view) isLost() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lost
}

// dropFields drops the fields to save memory. The view still follows the channel, so it knows when
// the next field ends.
func (v *view) dropFields() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dropFieldsLocked()
}

func (v *view) dropFieldsLocked() {
	v.fields, v.owners = nil, nil
	clear(v.series)
}

// bytes returns about how many bytes the view takes, without the pages that are held. Snapshots.mu
// must be locked.
func (v *view) bytes() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fields == nil {
		return 0
	}
	if v.fieldsSize < 0 {
		v.fieldsSize = 0
		for name, f := range v.fields.All() {
			v.fieldsSize += len(name) + len(f.Value) + fieldBytes
		}
	}
	total := v.fieldsSize
	for _, c := range v.series {
		if c.holders == 0 {
			total += c.bytes
		}
	}
	return total
}

// owns reports whether a client owns a field, and true if that is not known.
func (v *view) owns(client string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fields == nil {
		return true
	}
	if v.owners == nil {
		v.owners = make(map[string]struct{})
		for _, f := range v.fields.All() {
			for _, owner := range f.Owners {
				v.owners[owner] = struct{}{}
			}
		}
	}
	_, found := v.owners[client]
	return found
}

// encoded returns pages with a prefix whose id is at least from, if they are encoded.
func (v *view) encoded(from int64, prefix string) *Series {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.encodedLocked(from, prefix, v.s.opts.Hub.StoreTime())
}

func (v *view) encodedLocked(from int64, prefix string, now int64) *Series {
	c := v.series[prefix]
	if c == nil || v.id < from || c.ID < from || c.due > 0 && c.due <= now {
		return nil
	}
	c.old = false
	return c.Series
}

// pages returns pages with a prefix whose id is at least from. It returns nil if the view does not
// have them.
func (v *view) pages(from int64, prefix string) *Series {
	now := v.s.opts.Hub.StoreTime()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fields == nil || v.id < from || v.id == 0 && v.emptyUntilLocked() <= now {
		return nil
	}
	if series := v.encodedLocked(from, prefix, now); series != nil {
		return series
	}
	// A field whose end has passed may be in the pages: the message that touched it in time can be on
	// its way. A message after v.id was stored at its time or later, so it touches no field that had
	// ended then.
	ended := min(now, queue.TimeOf(v.id).UnixMilli())
	c := &cached{Series: &Series{ID: v.id}}
	if v.id == 0 {
		c.ID, c.due = v.s.opts.Hub.EmptyID(v.readAt), v.emptyUntilLocked()
	}
	pages := v.fields.Pages(ended, state.Filter{State: true, Prefix: prefix}, 0)
	for i, fields := range pages {
		m := v.s.opts.Messages.Event(wire.Event{
			Type: wire.TypeState, Channel: v.channel.Name, ID: &c.ID, More: i < len(pages)-1,
			StateEvent: &wire.StateEvent{First: i == 0, Fields: fields},
		})
		c.bytes += max(m.Size(), len(fields)) // some dialects encode m only when it is used
		c.Pages = append(c.Pages, m)
	}
	v.series[prefix] = c
	return c.Series
}

// emptyUntilLocked returns how long pages without an id of a message can be used, in Unix ms.
func (v *view) emptyUntilLocked() int64 { return v.readAt + hub.EmptyIDValid.Milliseconds() }

// nextDueLocked returns the first time at which a field ends, or 0 if none ends.
func (v *view) nextDueLocked() int64 {
	due := int64(math.MaxInt64)
	for _, f := range v.fields.All() {
		if f.Until > 0 && f.Until < due {
			due = f.Until
		}
	}
	if due == math.MaxInt64 {
		return 0
	}
	return due
}

// dropOldSeries drops the pages that no subscriber used since the tick before.
func (v *view) dropOldSeries() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for prefix, c := range v.series {
		if c.old {
			delete(v.series, prefix)
		}
		c.old = true
	}
}
