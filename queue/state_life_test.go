package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

func testStateKeep(t *testing.T, open opener) {
	f := open(t, Options{})
	f.advance(t, 0)
	kept := func(keep time.Duration, ops ...state.Op) (Appended, error) {
		return f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: &state.Update{
			Ops: ops, Writer: state.BackendHolder, Limits: state.Limits{Keep: keep},
		}})
	}
	first := must(kept(time.Minute, set("a", "1"), part(set("b", "2"), "a"), leased(set("c", "3"), time.Hour)))(t)
	f.advance(t, 59*time.Second)
	page := f.wantState(t, "kept", map[string]string{"a": "1", "b": "2", "c": "3"})
	equal(t, "the state ends within a second", page.Clock < page.Due && page.Due <= page.Clock+1000, true)
	equal(t, "due of the update", first.Due, page.Due)
	early := must(f.stepState(t, Sweep, state.Connection{}))(t)
	equal(t, "an early sweep", fmt.Sprint(early.ID, early.Due, early.KeepUntil), fmt.Sprint(0, page.Due, page.Due))
	equal(t, "the end of the state in a page", page.KeepUntil, page.Due)
	f.advance(t, time.Second)
	o := f.ReadStates(t.Context(), []StateRead{{Channel: room}, {Channel: room, Fields: []string{"a"}}})
	equal(t, "fields after the keeping time", len(o[0].Value.Fields)+len(o[1].Value.Fields), 0)
	a := must(kept(time.Minute, set("b", "4")))(t)
	wantEntry(t, "the next update clears", a, `~{"cleared":true,"set":{"b":4}}`)
	f.wantState(t, "cleared", map[string]string{"b": "4"})

	f.advance(t, time.Minute)
	wantRefusal(t, "refused", second(kept(time.Minute, state.Op{Field: "b", Kind: state.Touch})), wire.NotFound)
	f.wantState(t, "a refused update clears", map[string]string{})
	must(kept(time.Minute, set("b", "5")))(t)
	f.advance(t, time.Minute)
	swept := must(f.stepState(t, Sweep, state.Connection{}))(t)
	wantEntry(t, "the sweep clears", swept, `~{"cleared":true}`)
	equal(t, "due of the sweep", fmt.Sprint(swept.Due, swept.KeepUntil), "0 0")
	f.wantState(t, "swept", map[string]string{})
	must(f.update(t, set("b", "6")))(t)
	f.advance(t, 10000*time.Hour)
	o = f.ReadStates(t.Context(), []StateRead{{Channel: room}})
	equal(t, "fields that are kept forever", fmt.Sprint(len(o[0].Value.Fields), o[0].Value.Due, o[0].Value.KeepUntil), "1 0 -1")
	equal(t, "a sweep of a state that is kept forever", must(f.stepState(t, Sweep, state.Connection{}))(t).KeepUntil, -1)
}

// testStateKeptBySmallChanges checks what one small change of a channel keeps alive, which bounds
// what a user can keep: all fields but those with a lease, and no more bytes than the limit.
func testStateKeptBySmallChanges(t *testing.T, open opener) {
	f := open(t, Options{})
	f.advance(t, 0)
	const keep, most = time.Hour, 4096
	change := func(ops ...state.Op) error {
		_, err := f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: &state.Update{
			Ops: ops, Writer: state.BackendHolder, Limits: state.Limits{Keep: keep, Bytes: most},
		}})
		return err
	}
	large, short := `"`+strings.Repeat("x", most/2)+`"`, `"`+strings.Repeat("y", most/4)+`"`
	ok(t, change(set("large", large), leased(set("lease", short), 2*keep), set("n", "0")))
	for day := range 3 {
		f.advance(t, keep-time.Second)
		ok(t, change(set("n", fmt.Sprint(day))))
		want := map[string]string{"large": large, "n": fmt.Sprint(day)}
		if day < 2 {
			want["lease"] = short
		}
		f.wantState(t, fmt.Sprint("after change ", day), want)
	}
	if err := change(set("more", large)); err == nil {
		t.Error("the state has more bytes than the limit")
	}
	f.advance(t, keep)
	must(f.stepState(t, Sweep, state.Connection{}))(t)
	f.wantState(t, "without a change", map[string]string{})
}

func testStateKeys(t *testing.T, open opener) {
	f := open(t, Options{})
	f.setServers(t, room, "s1")
	once := func(key string, ops ...state.Op) (Appended, error) {
		return f.AppendChannel(t.Context(), ChannelPush{Channel: room, Key: key, Update: &state.Update{Ops: ops, Writer: state.BackendHolder}})
	}
	wantRefusal(t, "refused", second(once("k", state.Op{Field: "n", Kind: state.Touch})), wire.NotFound)
	first := must(once("k", add("n", 2), add("m", 1)))(t)
	equal(t, "a refusal is not remembered", first.Duplicate, false)
	again := must(once("k", add("n", 2), state.Op{Field: "z", Kind: state.Touch}))(t)
	equal(t, "duplicate", fmt.Sprint(again.Duplicate, again.ID == first.ID, again.Numbers, again.Prev, again.Data == nil, again.Servers),
		"true true map[m:1 n:2] 0 true [s1]")
	plain := must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Key: "k", Data: []byte("1")}))(t)
	equal(t, "a message with the key", fmt.Sprint(plain.Duplicate, plain.ID == first.ID, plain.Numbers), "true true map[m:1 n:2]")
	must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Key: "plain", Data: []byte("1")}))(t)
	equal(t, "an update with the key of a message", must(once("plain", add("n", 2)))(t).Duplicate, true)
	f.wantState(t, "once", map[string]string{"n": "2", "m": "1"})
	_, err := f.AppendChannel(t.Context(), ChannelPush{Channel: "new", ExistingOnly: true, Update: &state.Update{Ops: []state.Op{set("a", "1")}}})
	fails(t, "existing only", err, ErrNewChannel)
	must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, ExistingOnly: true, Update: &state.Update{Ops: []state.Op{set("a", "1")}}}))(t)
}

func testStateDurable(t *testing.T, open opener) {
	f := open(t, Options{})
	push := ChannelPush{Channel: room, Key: "k", Durable: true, Update: &state.Update{Ops: []state.Op{add("n", 1)}, Writer: state.BackendHolder}}
	if _, inMemory := f.contract.(*Memory); inMemory {
		_, err := f.AppendChannel(t.Context(), push)
		fails(t, "in memory", err, ErrNoReplicas)
		return
	}
	for _, duplicate := range []bool{false, true} {
		a, err := f.AppendChannel(t.Context(), push)
		fails(t, "without a replica", err, ErrNotReplicated)
		equal(t, "duplicate and numbers", fmt.Sprint(a.Duplicate, a.Numbers), fmt.Sprintf("%v map[n:1]", duplicate))
	}
	f.wantState(t, "stored", map[string]string{"n": "1"})
	push.Key, push.Update = "", &state.Update{Ops: []state.Op{{Field: "z", Kind: state.Touch}}}
	wantRefusal(t, "refused", second(f.AppendChannel(t.Context(), push)), wire.NotFound)
}

func testStateTrim(t *testing.T, open opener) {
	f := open(t, Options{ChannelCap: 3})
	a := must(f.update(t, set("a", "1"), leased(set("b", "2"), time.Hour)))(t)
	push(t, f, room, 5)
	untouched := func(what string) {
		t.Helper()
		o := f.ReadStates(t.Context(), []StateRead{{Channel: room}})[0]
		page := must(o.Value, o.Err)(t)
		equal(t, what, fmt.Sprint(len(page.Fields), page.Fields[0].ID), fmt.Sprint(2, a.ID))
		if f.rdb != nil {
			checkStateRecords(t, f.rdb, f.keys, room)
		}
	}
	untouched("after the cap")
	must(f.TrimChannel(t.Context(), room, time.Hour, 1, false))(t)
	untouched("after a trim by count")
	marker := must(f.ConfirmChannel(t.Context(), room, must(f.ReadChannel(t.Context(), room, 0, 0))(t).Last+1000))(t)
	untouched("after a marker")
	ok(t, f.KeepPositions(t.Context(), []string{room}))
	untouched("after KeepPositions")
	must(f.TrimChannel(t.Context(), room, -time.Hour, 1, false))(t)
	untouched("after a trim of all messages")
	f.expire(t, 0, f.keys.channel(room))
	b := must(f.update(t, set("c", "3")))(t)
	equal(t, "prev", b.Prev, marker.ID)
}

func testStateManyExpire(t *testing.T, open opener) {
	f := open(t, Options{})
	f.advance(t, 0)
	var ops []state.Op
	for i := range 1000 {
		ops = append(ops, leased(set(fmt.Sprintf("%s/%04d", strings.Repeat("x", 60), i), "1"), time.Second))
	}
	must(f.update(t, ops...))(t)
	must(f.update(t, part(set("part", "1"), ops[7].Field), set("stays", "1")))(t)
	f.advance(t, time.Second)
	a := must(f.update(t, set("stays", "2")))(t)
	equal(t, "due", a.Due, 0)
	page := must(f.ReadChannel(t.Context(), room, 0, 100))(t)
	gone := 0
	for _, m := range page.Messages {
		e := must(state.DecodeEntry(m.Data))(t)
		if gone += len(e.Gone); len(e.Gone) > 0 && len(m.Data) > 40<<10 {
			t.Errorf("an entry has %d bytes", len(m.Data))
		}
	}
	equal(t, "fields that are gone", gone, 1001)
	equal(t, "entries", len(page.Messages), 5)
	equal(t, "id", page.Messages[4].ID, a.ID)
	equal(t, "prev", page.Messages[3].ID, a.Prev)
	f.wantState(t, "after all", map[string]string{"stays": "2"})
}

// testStateFull checks that the refusal of a full group shows no fields that are due.
func testStateFull(t *testing.T, open opener) {
	f := open(t, Options{})
	f.advance(t, 0)
	var ops []state.Op
	for i := range 80 {
		op := set(fmt.Sprintf("seat/%02d", i), "1")
		if i < 20 {
			op.TTL = time.Second
		}
		ops = append(ops, op)
	}
	must(f.update(t, ops...))(t)
	f.advance(t, time.Second)
	op := set("seat/new", "1")
	op.GroupMax = 60
	refusal := wantRefusal(t, "full", second(f.update(t, op)), wire.Full)
	equal(t, "fields shown", len(refusal.Fields), 60)
	equal(t, "message", refusal.Error(), "full: group seat/ would have 61 fields, at most 60 are allowed")
}

// testStateBatch changes, reads and lists many channels, of which one fails.
func testStateBatch(t *testing.T, open opener) {
	f := open(t, Options{})
	var pushes []ChannelPush
	var reads []StateRead
	var steps []StateStep
	for i := range 100 {
		channel := fmt.Sprint("c", i)
		u := &state.Update{Ops: []state.Op{set("i", fmt.Sprint(i)), own(set("o", "1"), 0)}, Client: amy.Client, Generation: 5, Server: "s1"}
		if i == 50 {
			u.If = []state.Condition{{Field: "i", Kind: state.Exists}}
		}
		pushes = append(pushes, ChannelPush{Channel: channel, Update: u}, ChannelPush{Channel: channel, Data: []byte("1")})
		reads = append(reads, StateRead{Channel: channel})
		steps = append(steps, StateStep{Channel: channel, Kind: OwnerEnded, Conn: amy})
	}
	for i, o := range f.AppendChannels(t.Context(), pushes) {
		if _, refused := errors.AsType[*state.Refusal](o.Err); refused != (i == 100) || o.Err != nil && !refused {
			t.Errorf("push %d: %v", i, o.Err)
		}
	}
	var listed []string
	for channel, err := range f.StateChannels(t.Context()) {
		ok(t, err)
		listed = append(listed, channel)
	}
	slices.Sort(listed)
	equal(t, "channels with a state", len(slices.Compact(listed)), 99)
	for i, o := range f.StepStates(t.Context(), steps) {
		ok(t, o.Err)
		equal(t, "a step appends", o.Value.ID > 0, i != 50)
	}
	for i, o := range f.ReadStates(t.Context(), reads) {
		ok(t, o.Err)
		want := fmt.Sprint(i)
		if i == 50 {
			equal(t, "fields of the refused update", len(o.Value.Fields), 0)
		} else if len(o.Value.Fields) != 1 || string(o.Value.Fields[0].Value) != want {
			t.Errorf("channel %d: %v", i, o.Value.Fields)
		}
	}
}
