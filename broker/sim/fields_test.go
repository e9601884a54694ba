package sim

import (
	"context"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"switchboard/broker/namespace"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// The groups of fields, and the most fields that the rules allow in each.
const (
	members, maxMembers = "member/", 2
	seats, maxSeats     = "seat/", 3
)

// stateRules are the rules for the fields of a run.
type stateRules struct {
	grace, keep, lease time.Duration
}

func newStateRules(w *world) stateRules {
	return stateRules{
		grace: pick(w, []time.Duration{time.Millisecond, 30 * time.Millisecond, 3 * time.Second, namespace.GraceNever}),
		keep:  pick(w, []time.Duration{24 * time.Hour, 24 * time.Hour, 24 * time.Hour, 3 * time.Second}),
		lease: pick(w, []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second}),
	}
}

// set returns the access rules of a run: one namespace for all channels.
func (r stateRules) set() *namespace.Set {
	anyone := namespace.Anyone
	set, err := namespace.New([]namespace.Rule{{
		Name: "*", Subscribe: anyone, Publish: anyone, History: anyone, State: anyone, Presence: anyone, StateKeep: r.keep, Grace: r.grace,
		Fields: []namespace.FieldRule{
			{Pattern: members + "*", Write: anyone, Own: true, Max: maxMembers},
			{Pattern: seats + "*", Write: namespace.Claim, TTL: r.lease, Max: maxSeats},
			{Pattern: "hat/{n}", Write: anyone, Of: members + "{n}"},
			{Pattern: "turn", Write: anyone},
			{Pattern: "count", Write: anyone},
		},
	}})
	if err != nil {
		panic(err)
	}
	return set
}

// entryAt is one entry of a channel's log, and the fold of the log at its id.
type entryAt struct {
	id     int64
	entry  *state.Entry
	fields map[string]state.Shown
	// changes says that the entry does more than to remove what clients see as ended by themselves.
	changes bool
}

// fieldsModel is what the model knows of the state of one channel.
type fieldsModel struct {
	w         *world
	channel   string
	fold      *state.Map
	entries   []entryAt
	updatedAt int64 // time of the last update, on the store's clock
}

func (m *model) fieldsOf(channel string) *fieldsModel {
	f := m.fields[channel]
	if f == nil {
		f = &fieldsModel{w: m.w, channel: channel, fold: state.NewMap(0)}
		m.fields[channel] = f
	}
	return f
}

// add folds an entry of the log.
func (f *fieldsModel) add(message queue.Message) {
	entry, err := state.DecodeEntry(message.Data)
	if err != nil {
		f.w.violate("%s: entry %d: %v", f.channel, message.ID, err)
		return
	}
	before := &state.Map{Fields: maps.Clone(f.fold.Fields)}
	before.Expire(f.w.storeNow())
	f.fold.Apply(message.ID, entry)
	changes := !maps.EqualFunc(before.Fields, f.fold.Fields, sameShown)
	f.entries = append(f.entries, entryAt{message.ID, entry, maps.Clone(f.fold.Fields), changes})
	for group, limit := range map[string]int{members: maxMembers, seats: maxSeats} {
		n := 0
		for name := range f.fold.Fields {
			if strings.HasPrefix(name, group) {
				n++
			}
		}
		if n > limit {
			f.w.violate("%s at %d: group %s has %d fields, at most %d are allowed", f.channel, message.ID, group, n, limit)
		}
	}
}

// at returns the fields at an id.
func (f *fieldsModel) at(id int64) map[string]state.Shown {
	n := sort.Search(len(f.entries), func(i int) bool { return f.entries[i].id > id })
	if n == 0 {
		return nil
	}
	return f.entries[n-1].fields
}

// entry returns the entry with an id, or nil.
func (f *fieldsModel) entry(id int64) *state.Entry {
	i, found := slices.BinarySearchFunc(f.entries, id, func(e entryAt, id int64) int { return int(e.id - id) })
	if !found {
		return nil
	}
	return f.entries[i].entry
}

// needsHint reports whether subscribers must learn of the janitor's entry before the next message.
// They need not learn that the whole state has ended.
func (f *fieldsModel) needsHint(id int64) bool {
	i := slices.IndexFunc(f.entries, func(e entryAt) bool { return e.id == id })
	return f.entries[i].changes && !f.entries[i].entry.Cleared
}

// isUpdate reports whether an entry of an update is more than the fields that were due.
func isUpdate(e *state.Entry) bool {
	return e != nil && (e.Data != nil || len(e.Set)+len(e.Del)+len(e.Until)+len(e.Back)+len(e.Own) > 0)
}

// hasEnded reports whether the whole state may have ended, because it was not written for long.
func (f *fieldsModel) hasEnded() bool {
	return f.w.storeNow() >= f.updatedAt+f.w.rules.keep.Milliseconds()
}

// endsAfter reports whether the whole state at an id has ended, or may have.
func (f *fieldsModel) endsAfter(id int64) bool {
	n := sort.Search(len(f.entries), func(i int) bool { return f.entries[i].id > id })
	if n < len(f.entries) {
		return f.entries[n].entry.Cleared
	}
	return f.hasEnded()
}

// storeNow returns the time on the store's clock, in Unix milliseconds.
func (w *world) storeNow() int64 { return w.storeTime().UnixMilli() }

// storeTime is the clock of the queue. Faults make it jump forward.
func (w *world) storeTime() time.Time { return time.Now().Add(w.clockAhead) }

// stored returns the live fields of the store.
func (f *fieldsModel) stored() map[string]state.Shown {
	page := f.w.queue.ReadStates(context.Background(), []queue.StateRead{{Channel: f.channel}})[0].Value
	shown := make(map[string]state.Shown)
	for _, field := range page.Fields {
		shown[field.Name] = field.Show()
	}
	return shown
}

// check compares the store with the fold of its log.
func (f *fieldsModel) check(c *call) {
	stored := f.stored()
	if len(stored) == 0 && f.hasEnded() {
		return
	}
	want := &state.Map{Fields: maps.Clone(f.fold.Fields)}
	want.Expire(f.w.storeNow())
	if !maps.EqualFunc(stored, want.Fields, sameField) {
		f.w.violate("%v: the store has\n  %s\nthe fold of the log has\n  %s", c, describeFields(stored), describeFields(want.Fields))
	}
	for name, field := range stored {
		if field.Away && len(field.Owners) == 0 {
			f.w.violate("%v: field %s is away and has no owner", c, name)
		}
	}
}

func sameField(a, b state.Shown) bool { return sameShown(a, b) && slices.Equal(a.Owners, b.Owners) }

// sameShown compares what clients see of a field.
func sameShown(a, b state.Shown) bool {
	return a.ID == b.ID && string(a.Value) == string(b.Value) && a.Until == b.Until && a.Away == b.Away
}

func describeFields(fields map[string]state.Shown) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := fields[name]
		text := name + "=" + string(f.Value)
		if f.Away {
			text += " (away)"
		}
		list = append(list, text+" "+time.UnixMilli(f.Until).UTC().Format("05.000")+strings.Join(append([]string{""}, f.Owners...), " by "))
	}
	return strings.Join(list, ", ")
}

// filtered returns the fields that a filter shows.
func filtered(fields map[string]state.Shown, filter state.Filter) map[string]state.Shown {
	shown := maps.Clone(fields)
	maps.DeleteFunc(shown, func(name string, _ state.Shown) bool { return !filter.Shows(name) })
	return shown
}

// updateCodes are the errors with which an update may be refused.
var updateCodes = []wire.ErrorCode{wire.Conflict, wire.Full, wire.OutOfRange, wire.NotFound, wire.Forbidden, wire.BadRequest}
