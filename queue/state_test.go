package queue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

func testStateOperations(t *testing.T, open opener) {
	f := open(t, Options{})
	f.setServers(t, room, "s1")
	message := push(t, f, room, 1)[0]
	a := must(f.update(t, set("turn", `"bob"`), add("n", 3), leased(set("seat/A1", `{"n":1}`), time.Minute)))(t)
	equal(t, "prev", a.Prev, message)
	equal(t, "numbers", fmt.Sprint(a.Numbers), "map[n:3]")
	equal(t, "servers", fmt.Sprint(a.Servers), "[s1]")
	page := f.wantState(t, "after set", map[string]string{"turn": `"bob"`, "n": "3", "seat/A1": `{"n":1}`})
	equal(t, "id of the page", page.ID, a.ID)
	equal(t, "due", page.Due, page.Fields[1].Until())
	equal(t, "due of the update", a.Due, page.Due)
	for _, field := range page.Fields {
		equal(t, field.Name+": id", field.ID, a.ID)
		equal(t, field.Name+": holder", field.Holder, state.BackendHolder)
	}

	b := must(f.update(t, state.Op{Field: "seat/A1", Kind: state.Touch}, state.Op{Field: "turn", Kind: state.Delete},
		state.Op{Field: "absent", Kind: state.Delete}, add("n", 7)))(t)
	wantEntry(t, "entry", b, `~{"del":["turn","absent"],"set":{"n":10},"until":{"seat/A1":0}}`)
	equal(t, "due after touch", b.Due, 0)
	page = f.wantState(t, "after del", map[string]string{"n": "10", "seat/A1": `{"n":1}`})
	equal(t, "touch keeps the id", page.Fields[1].ID, a.ID)

	wantRefusal(t, "touch of an absent field", second(f.update(t, state.Op{Field: "turn", Kind: state.Touch})), wire.NotFound)
	refusal := wantRefusal(t, "add", second(f.update(t, set("other", "1"), add("n", 1))), wire.OutOfRange)
	equal(t, "message", refusal.Error(), "limit: field n: the result 11 is out of bounds")
	equal(t, "current value", string(refusal.Fields["n"].Value), "10")
	wantRefusal(t, "add to an object", second(f.update(t, add("seat/A1", 1))), wire.BadRequest)
	f.wantState(t, "after refusals", map[string]string{"n": "10", "seat/A1": `{"n":1}`})

	c := must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: &state.Update{Data: []byte(`{"move":"e4"}`), Client: amy.Client}}))(t)
	wantEntry(t, "data only", c, `~{"by":"amy/\"p\\1","data":{"move":"e4"}}`)
	large := `"` + fmt.Sprintf("%016384d", 7) + `"`
	must(f.update(t, set("large", large)))(t)
	f.wantState(t, "with a large value", map[string]string{"n": "10", "seat/A1": `{"n":1}`, "large": large})
	must(f.update(t, state.Op{Field: "large", Kind: state.Delete}, state.Op{Field: "n", Kind: state.Delete}, state.Op{Field: "seat/A1", Kind: state.Delete}))(t)
	f.wantState(t, "after the last field", map[string]string{})
}

// second returns the error of a call.
func second[T any](_ T, err error) error { return err }

func testStateConditions(t *testing.T, open opener) {
	f := open(t, Options{})
	a := must(f.update(t, set("a", "1"), set("b", "2")))(t)
	for _, c := range []struct {
		name string
		cond state.Condition
		met  bool
	}{
		{"id", state.Condition{Field: "a", ID: a.ID}, true},
		{"another id", state.Condition{Field: "a", ID: a.ID - 1}, false},
		{"id of an absent field", state.Condition{Field: "z", ID: a.ID}, false},
		{"absent", state.Condition{Field: "z", Kind: state.IsAbsent}, true},
		{"not absent", state.Condition{Field: "a", Kind: state.IsAbsent}, false},
		{"exists", state.Condition{Field: "b", Kind: state.Exists}, true},
		{"does not exist", state.Condition{Field: "z", Kind: state.Exists}, false},
	} {
		u := &state.Update{Ops: []state.Op{set("c", "3")}, If: []state.Condition{{Field: "b", Kind: state.Exists}, c.cond}, Writer: state.BackendHolder}
		if c.cond.Field == "b" {
			u.If = u.If[1:]
		}
		got, err := f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: u})
		if c.met {
			ok(t, err)
			continue
		}
		equal(t, c.name+": id", got.ID, 0)
		refusal := wantRefusal(t, c.name, err, wire.Conflict)
		equal(t, c.name+": fields", len(refusal.Fields), 1)
		if field, found := refusal.Fields[c.cond.Field]; !found || (field != nil) != (c.cond.Field == "a") || field != nil && field.ID != a.ID {
			t.Errorf("%s: the refusal shows %v", c.name, refusal.Fields)
		}
	}
}

// testStateGroupConditions checks conditions on the number of fields of a group, one of them due.
func testStateGroupConditions(t *testing.T, open opener) {
	f := open(t, Options{})
	f.advance(t, 0)
	short := set("seat/3", "1")
	short.TTL = time.Minute
	must(f.update(t, set("seat/1", "1"), set("seat/2", "1"), short, set("seats", "1"), set("$max/seat/", "9")))(t)
	try := func(most int, code wire.ErrorCode) {
		t.Helper()
		u := &state.Update{
			Ops: []state.Op{set("n", strconv.Itoa(most))}, Writer: state.BackendHolder,
			If: []state.Condition{{Field: "seat/", Kind: state.AtMost, Max: most}, {Field: "seats", Kind: state.Exists}},
		}
		got, err := f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: u})
		if code == "" {
			ok(t, err)
			return
		}
		equal(t, "id", got.ID, 0)
		refusal := wantRefusal(t, "a group that is too large", err, code)
		equal(t, "group and limit", fmt.Sprint(refusal.Group, refusal.Max, len(refusal.Fields)), fmt.Sprint("seat/", most, 0))
	}
	try(3, "")
	try(2, wire.Full)
	try(0, wire.Full)
	f.advance(t, time.Minute)
	try(2, "")
	try(1, wire.Full)
}

// testStateLargeRefusals checks that a refusal holds about 32 KiB of values, in the order of names.
func testStateLargeRefusals(t *testing.T, open opener) {
	f := open(t, Options{})
	large := strconv.Quote(strings.Repeat("x", 14_000))
	a := must(f.update(t, set("a/1", large), set("a/2", large), set("a/3", large), set("a/4", "1")))(t)
	full := set("a/5", "1")
	full.GroupMax = 4
	for name, u := range map[string]*state.Update{
		"full": {Ops: []state.Op{full}},
		"conditions": {If: []state.Condition{
			{Field: "a/4", Kind: state.IsAbsent}, {Field: "a/3", Kind: state.IsAbsent}, {Field: "a/1", Kind: state.IsAbsent}, {Field: "a/2", Kind: state.IsAbsent},
		}},
	} {
		u.Writer = state.BackendHolder
		_, err := f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: u})
		refusal, _ := errors.AsType[*state.Refusal](err)
		if refusal == nil || len(refusal.Fields) != 4 {
			t.Fatalf("%s: %v, want a refusal with 4 fields", name, err)
		}
		for field, want := range map[string]string{"a/1": large, "a/2": large, "a/3": "", "a/4": "1"} {
			got := refusal.Fields[field]
			equal(t, name+": id of "+field, got.ID, a.ID)
			equal(t, name+": value of "+field, string(got.Value), want)
		}
	}
}

func testStateRules(t *testing.T, open opener) {
	f := open(t, Options{})
	claim := func(op state.Op) state.Op { op.Claim = true; return op }
	held := func(op state.Op) state.Op { op.HeldParent = true; return op }
	limited := func(op state.Op) state.Op { op.GroupMax = 2; return op }

	must(f.updateBy(t, amy, claim(set("seat/1", "1"))))(t)
	must(f.updateBy(t, amy, claim(set("seat/1", "2"))))(t)
	wantRefusal(t, "claimed", second(f.updateBy(t, bob, claim(set("seat/1", "3")))), wire.Conflict)

	must(f.updateBy(t, amy, held(part(set("p/color", `"red"`), "seat/1"))))(t)
	wantRefusal(t, "parent of another user", second(f.updateBy(t, bob, held(part(set("p/x", "1"), "seat/1")))), wire.Forbidden)
	wantRefusal(t, "part of another user", second(f.updateBy(t, bob, held(part(set("p/color", "1"), "seat/1")))), wire.Forbidden)
	wantRefusal(t, "part of another user, parent not named", second(f.updateBy(t, bob, held(set("p/color", "1")))), wire.Forbidden)
	must(f.updateBy(t, amy, held(part(set("p/color", `"blue"`), "seat/1"))))(t)
	must(f.updateBy(t, bob, part(set("p/color", `"red"`), "seat/1")))(t)
	wantRefusal(t, "no parent", second(f.update(t, part(set("p/x", "1"), "seat/9"))), wire.NotFound)
	wantRefusal(t, "part of a part", second(f.update(t, part(set("p/x", "1"), "p/color"))), wire.BadRequest)

	must(f.update(t, limited(set("seat/2", "1"))))(t)
	refusal := wantRefusal(t, "full", second(f.update(t, limited(set("seat/3", "1")))), wire.Full)
	equal(t, "group, max and fields", fmt.Sprintln(refusal.Group, refusal.Max, len(refusal.Fields)), "seat/ 2 2\n")
	must(f.update(t, state.Op{Field: "seat/2", Kind: state.Delete}, limited(set("seat/3", "1"))))(t)
	must(f.update(t, set("$max/seat/", "1")))(t)
	f.wantState(t, "a lower limit removes nothing", map[string]string{"seat/1": "2", "seat/3": "1", "p/color": `"red"`, "$max/seat/": "1"})
	wantRefusal(t, "full by $max", second(f.update(t, state.Op{Field: "seat/3", Kind: state.Delete}, set("seat/4", "1"))), wire.Full)

	a := must(f.update(t, state.Op{Field: "seat/1", Kind: state.Delete}))(t)
	wantEntry(t, "parts end with their parent", a, `~{"del":["seat/1","p/color"]}`)
	f.wantState(t, "without seat/1", map[string]string{"seat/3": "1", "$max/seat/": "1"})

	for name, u := range map[string]*state.Update{
		"fields": {Ops: []state.Op{set("x", "1")}, Limits: state.Limits{Fields: 2}},
		"bytes":  {Ops: []state.Op{set("seat/3", "12345678")}, Limits: state.Limits{Bytes: 20}},
		"owned":  {Ops: []state.Op{own(set("x", "1"), 0), own(set("y", "1"), 0)}, Client: "amy/phone", Limits: state.Limits{Owned: 1}},
	} {
		code := wire.Full
		if name == "bytes" {
			code = wire.TooLarge
		}
		wantRefusal(t, name, second(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: u})), code)
	}
}

func testStateLeases(t *testing.T, open opener) {
	f := open(t, Options{})
	f.advance(t, 0)
	must(f.update(t, leased(set("seat/1", "1"), 10*time.Second), leased(set("seat/2", "2"), 30*time.Second), set("n", "0"),
		part(set("p/1", "1"), "seat/1")))(t)
	f.advance(t, 10*time.Second)
	f.wantState(t, "a due field is absent for readers", map[string]string{"seat/2": "2", "n": "0", "p/1": "1"})

	refused, err := f.update(t, state.Op{Field: "seat/1", Kind: state.Touch})
	wantRefusal(t, "a due field is absent for writers", err, wire.NotFound)
	wantEntry(t, "a refused update removes what is due", refused, `~{"gone":{"p/1":"expired","seat/1":"expired"}}`)
	f.wantState(t, "after the refusal", map[string]string{"seat/2": "2", "n": "0"})
	f.advance(t, 30*time.Second)
	a := must(f.update(t, set("seat/2", "3")))(t)
	wantEntry(t, "one entry", a, `~{"gone":{"seat/2":"expired"},"set":{"seat/2":3}}`)
	equal(t, "due", a.Due, 0)
	f.wantState(t, "after the update", map[string]string{"seat/2": "3", "n": "0"})

	must(f.update(t, leased(state.Op{Field: "n", Kind: state.Touch}, time.Second), leased(set("m", "1"), time.Second)))(t)
	must(f.update(t, leased(state.Op{Field: "n", Kind: state.Touch}, time.Hour)))(t)
	f.advance(t, time.Minute)
	swept := must(f.stepState(t, Sweep, state.Connection{}))(t)
	wantEntry(t, "swept", swept, `~{"gone":{"m":"expired"}}`)
	page := f.wantState(t, "after the sweep", map[string]string{"seat/2": "3", "n": "0"})
	equal(t, "next due", swept.Due, page.Fields[0].Lease)
	equal(t, "nothing to sweep", must(f.stepState(t, Sweep, state.Connection{}))(t).ID, 0)
}

func testStateOwners(t *testing.T, open opener) {
	f := open(t, Options{})
	f.advance(t, 0)
	must(f.updateBy(t, amy, own(set("member/amy", "1"), 15*time.Second), own(set("cursor", "2"), 0), own(set("pc/amy", "3"), state.GraceNever)))(t)
	next := amy
	next.Generation++
	fields := map[string]string{"member/amy": "1", "pc/amy": "3"}

	ended := must(f.stepState(t, OwnerEnded, amy))(t)
	until := f.wantState(t, "after the end", fields).Due
	wantEntry(t, "away", ended, fmt.Sprintf(`~{"gone":{"cursor":"left"},"away":{"member/amy":%d,"pc/amy":0}}`, until))
	wantRefusal(t, "an ended generation", second(f.updateBy(t, amy, set("x", "1"))), wire.Unavailable)
	equal(t, "a second end", must(f.stepState(t, OwnerEnded, amy))(t).ID, 0)
	if _, err := f.stepState(t, OwnerBack, amy); err == nil {
		t.Error("an ended generation is back")
	}
	back := must(f.stepState(t, OwnerBack, next))(t)
	wantEntry(t, "back", back, `~{"back":["member/amy","pc/amy"]}`)
	f.wantState(t, "after back", fields)
	_, err := f.stepState(t, OwnerBack, amy)
	fails(t, "a lower generation is back", err, ErrStale)
	equal(t, "the end of a lower generation", must(f.stepState(t, OwnerEnded, amy))(t).ID, 0)

	must(f.stepState(t, OwnerEnded, next))(t)
	f.advance(t, 15*time.Second)
	f.wantState(t, "after the grace period", map[string]string{"pc/amy": "3"})
	next.Generation++
	back = must(f.stepState(t, OwnerBack, next))(t)
	wantEntry(t, "back too late", back, `~{"gone":{"member/amy":"left"},"back":["pc/amy"]}`)
	left := must(f.stepState(t, OwnerUnsubscribed, next))(t)
	wantEntry(t, "unsubscribed", left, `~{"away":{"pc/amy":0}}`)
	f.wantState(t, "after unsubscribe", map[string]string{"pc/amy": "3"})
	must(f.update(t, state.Op{Field: "pc/amy", Kind: state.Delete}))(t)
	wantRefusal(t, "a generation before", second(f.updateBy(t, amy, own(set("x", "1"), 0))), wire.Unavailable)
	f.advance(t, 2*time.Hour)
	must(f.stepState(t, Sweep, state.Connection{}))(t)
	f.wantState(t, "after the fence", map[string]string{})
	must(f.updateBy(t, amy, own(set("x", "1"), 0)))(t)
}

// testStateFence ends a connection in a channel without a state. An update of the connection that
// the store executes after that is refused, and the channel still counts as new.
func testStateFence(t *testing.T, open opener) {
	f := open(t, Options{})
	f.advance(t, 0)
	for _, kind := range []StepKind{Sweep, ServerEnded, OwnerBack, OwnerUnsubscribed} {
		must(f.stepState(t, kind, amy))(t)
	}
	equal(t, "channels with a state", fmt.Sprint(slices.Collect(maps.Keys(maps.Collect(f.StateChannels(t.Context()))))), "[]")

	ended := must(f.stepState(t, OwnerEnded, amy))(t)
	equal(t, "the end", fmt.Sprint(ended.ID, ended.Due, ended.KeepUntil), "0 0 0")
	page := f.wantState(t, "after the end", map[string]string{})
	equal(t, "the page", fmt.Sprint(page.ID, page.Due, page.KeepUntil), "0 0 0")
	late := ChannelPush{Channel: room, ExistingOnly: true, Update: &state.Update{
		Ops: []state.Op{own(set("x", "1"), time.Minute)}, Client: amy.Client, Generation: amy.Generation, Server: amy.Server,
	}}
	fails(t, "the channel is new", second(f.AppendChannel(t.Context(), late)), ErrNewChannel)
	late.ExistingOnly = false
	wantRefusal(t, "a late update", second(f.AppendChannel(t.Context(), late)), wire.Unavailable)
	equal(t, "a message", must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Data: []byte("1")}))(t).Prev, 0)
	wantRefusal(t, "a late update after a message", second(f.AppendChannel(t.Context(), late)), wire.Unavailable)
	f.wantState(t, "after the updates", map[string]string{})

	f.advance(t, time.Hour+time.Minute)
	must(f.stepState(t, Sweep, state.Connection{}))(t)
	f.wantState(t, "after the fence", map[string]string{})
	must(f.AppendChannel(t.Context(), late))(t)
	f.wantState(t, "forgotten", map[string]string{"x": "1"})
}

func testStateServers(t *testing.T, open opener) {
	f := open(t, Options{})
	f.advance(t, 0)
	must(f.updateBy(t, amy, own(set("shared", "1"), 0), own(set("a", "1"), time.Minute)))(t)
	must(f.updateBy(t, bob, own(set("shared", "2"), 0)))(t)
	page := f.wantState(t, "two owners", map[string]string{"shared": "2", "a": "1"})
	equal(t, "owners", fmt.Sprintf("%q", page.Fields[1].Owners), `["amy/\"p\\1" "bob/tab"]`)
	equal(t, "holder", page.Fields[1].Holder, "u:bob")

	ended := must(f.stepState(t, ServerEnded, state.Connection{Server: "s1"}))(t)
	wantEntry(t, "end of a server", ended, fmt.Sprintf(`~{"away":{"a":%d}}`, ended.Due))
	elsewhere := amy
	elsewhere.Server = "s3" // the server was not dead
	must(f.stepState(t, OwnerBack, elsewhere))(t)
	f.wantState(t, "back on another server", map[string]string{"shared": "2", "a": "1"})
	disown := set("shared", "3")
	disown.Own = state.Disown
	d := must(f.updateBy(t, bob, disown))(t)
	wantEntry(t, "disown", d, `~{"set":{"shared":3},"own":{"shared":["amy/\"p\\1"]},"by":"bob/tab"}`)
	u := must(f.stepState(t, OwnerUnsubscribed, elsewhere))(t)
	wantEntry(t, "the last owner", u, `~{"gone":{"a":"left","shared":"left"}}`)
	f.wantState(t, "after all", map[string]string{})
}

// testStateOwnAgain changes a field that the client owns already. Such an update changes nothing
// about its owners, unless the grace period or the connection is another one.
func testStateOwnAgain(t *testing.T, open opener) {
	f := open(t, Options{})
	f.advance(t, 0)
	first := amy
	first.Server = "s0"
	must(f.updateBy(t, first, own(set("a", "1"), time.Minute)))(t)
	again := must(f.updateBy(t, first, own(set("a", "2"), time.Minute)))(t)
	wantEntry(t, "own again", again, `~{"set":{"a":2},"by":"amy/\"p\\1"}`)
	must(f.updateBy(t, first, own(set("a", "3"), 0)))(t)
	left := must(f.stepState(t, ServerEnded, state.Connection{Server: first.Server}))(t)
	wantEntry(t, "end without a grace period", left, `~{"gone":{"a":"left"}}`)
	must(f.updateBy(t, amy, own(set("a", "3"), state.GraceNever)))(t)

	moved := amy
	moved.Server = "s3"
	must(f.updateBy(t, moved, own(set("a", "4"), state.GraceNever)))(t)
	equal(t, "the end of the server before", must(f.stepState(t, ServerEnded, state.Connection{Server: "s1"}))(t).ID, 0)
	ended := must(f.stepState(t, ServerEnded, state.Connection{Server: "s3"}))(t)
	wantEntry(t, "end of a server", ended, `~{"away":{"a":0}}`)
	back := must(f.updateBy(t, amy, own(set("a", "5"), state.GraceNever)))(t)
	wantEntry(t, "own again after the end of the server", back, `~{"set":{"a":5},"back":["a"],"by":"amy/\"p\\1"}`)

	next := amy
	next.Generation++
	must(f.updateBy(t, next, own(set("a", "6"), state.GraceNever)))(t)
	wantRefusal(t, "a generation before", second(f.updateBy(t, amy, own(set("a", "7"), state.GraceNever))), wire.Unavailable)
	must(f.updateBy(t, bob, set("a", "8"), own(set("b", "8"), 0)))(t)
	shared := must(f.updateBy(t, bob, own(set("a", "9"), state.GraceNever)))(t)
	wantEntry(t, "another owner", shared, `~{"set":{"a":9},"own":{"a":["amy/\"p\\1","bob/tab"]},"by":"bob/tab"}`)
	f.wantState(t, "after all", map[string]string{"a": "9", "b": "8"})
}
