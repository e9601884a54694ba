package state

import (
	"maps"
	"strings"
	"testing"
	"time"
)

// script is a state at a time that the test decides. Its calls return what they append to the log,
// without the EntryMark, or the refusal.
type script struct {
	*testing.T
	s     *State
	fold  *Map
	table Table // follows fold
	now   int64
	id    int64
}

func newScript(t *testing.T) *script {
	t.Helper()
	return &script{T: t, s: New(), fold: NewMap(0), now: 1000}
}

func (x *script) next() int64 {
	x.id++
	return x.id
}

// apply applies an update of the backend, unless u names another writer.
func (x *script) apply(u Update) string {
	if u.Writer == "" {
		u.Writer = BackendHolder
	}
	r, err := x.s.Apply(&u, x.now, x.next)
	logged := x.logged(r)
	if err == nil {
		return logged
	}
	if logged != "" {
		logged += " "
	}
	return logged + err.Error()
}

// ops applies operations of the backend.
func (x *script) ops(ops ...Op) string { return x.apply(Update{Ops: ops}) }

// by applies operations of a client with generation 1 on server s1.
func (x *script) by(client string, ops ...Op) string { return x.apply(from(client, 1, ops...)) }

// from returns an update of a client on server s1.
func from(client string, generation int64, ops ...Op) Update {
	return Update{Ops: ops, Client: client, Writer: ClientHolder(client), Generation: generation, Server: "s1"}
}

// at sets the clock, in milliseconds after the start, and returns the script.
func (x *script) at(ms int64) *script {
	x.now = 1000 + ms
	return x
}

func (x *script) sweep() string { return x.logged(x.s.Sweep(x.now, x.next)) }

func (x *script) end(client string, generation int64) string {
	return x.logged(x.s.End(x.now, x.next, Connection{client, generation, "s1"}))
}

func (x *script) endServer(server string) string {
	return x.logged(x.s.EndServer(x.now, x.next, server))
}

func (x *script) disown(client string, generation int64) string {
	return x.logged(x.s.Disown(x.now, x.next, Connection{client, generation, "s1"}))
}

func (x *script) back(client string, generation int64, server string) string {
	r, ok := x.s.Back(x.now, x.next, Connection{client, generation, server})
	if !ok {
		return "stale"
	}
	return x.logged(r)
}

// logged returns the entries of a result, and checks the state and the fold.
func (x *script) logged(r Result) string {
	x.Helper()
	var texts []string
	for _, logged := range r.Entries {
		text := logged.Entry.Encode()
		texts = append(texts, string(text[1:]))
		decoded, err := DecodeEntry(text)
		if err != nil {
			x.Fatal(err)
		}
		x.fold.Apply(logged.ID, decoded)
		x.table.Apply(logged.ID, decoded)
	}
	for _, wrong := range x.s.check() {
		x.Error(wrong)
	}
	w := &world{state: x.s, fold: x.fold, table: x.table, now: x.now}
	w.compareFold("after a call")
	if w.wrong != "" {
		x.Error(w.wrong)
	}
	return strings.Join(texts, " ")
}

// shown returns the live fields, as pages show them to the backend.
func (x *script) shown() string {
	m := &Map{Fields: maps.Clone(x.fold.Fields)}
	m.Expire(x.now)
	return string(m.Pages(0, Filter{State: true, Hidden: true}, 1<<30)[0])
}

// due checks when the next field ends.
func (x *script) due(want int64) {
	x.Helper()
	if got := x.s.NextDue(); got != want {
		x.Errorf("the next end is %d, want %d", got, want)
	}
}

// expect fails unless got is want.
func (x *script) expect(got, want string) {
	x.Helper()
	if got != want {
		x.Errorf("got  %s\nwant %s", got, want)
	}
}

// set, del, add and touch return operations; with changes one of them.
func set(field, value string) Op { return Op{Field: field, Kind: Set, Value: []byte(value)} }

func del(field string) Op { return Op{Field: field, Kind: Delete} }

func add(field string, by, least, most int64) Op {
	return Op{Field: field, Kind: Add, By: by, Min: least, Max: most}
}

func touch(field string, ttl time.Duration) Op { return Op{Field: field, Kind: Touch, TTL: ttl} }

func (op Op) with(change func(*Op)) Op {
	change(&op)
	return op
}

func (op Op) claimed() Op              { return op.with(func(op *Op) { op.Claim = true }) }
func (op Op) ttl(ttl time.Duration) Op { return op.with(func(op *Op) { op.TTL = ttl }) }
func (op Op) max(n int) Op             { return op.with(func(op *Op) { op.GroupMax = n }) }
func (op Op) of(parent string) Op      { return op.with(func(op *Op) { op.Parent = parent }) }
func (op Op) ofHeld(parent string) Op {
	return op.of(parent).with(func(op *Op) { op.HeldParent = true })
}
func (op Op) own(grace time.Duration) Op {
	return op.with(func(op *Op) { op.Own, op.Grace = Own, grace })
}
func (op Op) disowned() Op { return op.with(func(op *Op) { op.Own = Disown }) }
