package fields

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/broker/namespace"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

var testLimits = StateLimits{Fields: 1024, StateBytes: 1 << 20, FieldBytes: 64, Operations: 4, OwnedFields: 16}

// testSet returns the rules of the design, for channels with different rights.
func testSet(tb testing.TB) *namespace.Set {
	tb.Helper()
	rules := []namespace.FieldRule{
		{Pattern: "member/{user}", Write: namespace.Users, Own: true, Max: 4},
		{Pattern: "seat/*", Write: namespace.Claim, TTL: 10 * time.Minute, Max: 100, Bytes: 8, Grace: time.Second},
		{Pattern: "doc/*", Write: namespace.Grant},
		{Pattern: "n/{n}", Write: namespace.Users, Grace: namespace.GraceNever},
		{Pattern: "p/{n}/*", Write: namespace.Users, Of: "n/{n}"},
		{Pattern: "any/*", Write: namespace.Anyone},
		{Pattern: "closed/*"},
	}
	s, err := namespace.New([]namespace.Rule{
		{Name: "room:*", State: namespace.Users, Fields: rules, Grace: time.Minute, StateKeep: time.Hour},
		{Name: "blind:*", Fields: rules, StateKeep: namespace.KeepForever},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func backend() *Writer { return &Writer{Subject: namespace.Subject{Backend: true}} }

// amy returns a client of user amy that is subscribed with state.
func amy() *Writer {
	return &Writer{Subject: namespace.Subject{User: "amy"}, Client: "amy/tab", Generation: 7, Server: "s1", HasState: true}
}

// anonymous returns a client without a user.
func anonymous() *Writer { return &Writer{Client: "tab"} }

func decode(tb testing.TB, text string) *wire.Change {
	tb.Helper()
	var c wire.Change
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return &c
}

// show returns an operation as text, without zero values.
func show(op state.Op) string {
	text := []string{map[state.Kind]string{state.Set: "set", state.Delete: "del", state.Add: "add", state.Touch: "touch"}[op.Kind], op.Field}
	add := func(show bool, format string, args ...any) {
		if show {
			text = append(text, fmt.Sprintf(format, args...))
		}
	}
	add(op.Value != nil, "%s", op.Value)
	add(op.Kind == state.Add, "%d", op.By)
	add(op.Kind == state.Add && op.Min != -state.MaxNumber, "min=%d", op.Min)
	add(op.Kind == state.Add && op.Max != state.MaxNumber, "max=%d", op.Max)
	add(op.TTL > 0, "ttl=%v", op.TTL)
	add(op.Own == state.Own, "own")
	add(op.Own == state.Disown, "disown")
	add(op.Own == state.Own && op.Grace == state.GraceNever, "grace=never")
	add(op.Own == state.Own && op.Grace != state.GraceNever, "grace=%v", op.Grace)
	add(op.Claim, "claim")
	add(op.Parent != "", "of=%s", op.Parent)
	add(op.HeldParent, "held")
	add(op.GroupMax > 0, "group=%d", op.GroupMax)
	return strings.Join(text, " ")
}

// shown returns the operations and conditions of an update, joined by semicolons.
func shown(u *state.Update) string {
	var list []string
	for _, op := range u.Ops {
		list = append(list, show(op))
	}
	for _, c := range u.If {
		list = append(list, "if "+c.Field+" "+[]string{fmt.Sprint(c.ID), "absent", "exists"}[c.Kind])
	}
	return strings.Join(list, "; ")
}

func TestBuild(t *testing.T) {
	granted := amy()
	if err := granted.Grants.Add("room:1", "write"); err != nil {
		t.Fatal(err)
	}
	noState, open := amy(), anonymous()
	noState.HasState, open.Open = false, true
	onBehalf := amy()
	onBehalf.Backend = true
	odd := amy()
	odd.User = "a/b c"
	for _, c := range []struct {
		name   string
		w      *Writer
		change string
		want   string
	}{
		// The kinds of operations, and their values.
		{"all kinds", backend(), `{"touch":["d"],"add":{"c":1},"del":["b"],"set":{"a":[ 1, "é" ]}}`, `set a [1,"é"]; del b; add c 1; touch d`},
		{"null is a value", backend(), `{"set":{"a":null}}`, "set a null"},
		{"order of the text", backend(), `{"set":{"b":1,"a":2}}`, "set b 1; set a 2"},
		{"add with bounds", backend(), `{"add":{"c":{"by":-2,"min":0,"max":9}}}`, "add c -2 min=0 max=9"},
		{"add with one bound", backend(), `{"add":{"c":{"by":1,"max":9007199254740991}}}`, "add c 1"},

		// Rules of patterns.
		{"own: always", amy(), `{"set":{"member/amy":1}}`, "set member/amy 1 own grace=1m0s group=4"},
		{"own: always, add and touch", amy(), `{"add":{"member/amy":1}}`, "add member/amy 1 own grace=1m0s group=4"},
		{"own: always, the user escaped", odd, `{"touch":["member/a%2Fb%20c"]}`, "touch member/a%2Fb%20c own grace=1m0s group=4"},
		{"own: always, delete", noState, `{"del":["member/amy"]}`, "del member/amy"},
		{"own: always, the backend", backend(), `{"set":{"member/amy":1}}`, "set member/amy 1 group=4"},
		{"claim", amy(), `{"set":{"seat/1":1}}`, "set seat/1 1 ttl=10m0s claim group=100"},
		{"claim, delete", amy(), `{"del":["seat/1"]}`, "del seat/1 claim"},
		{"claim in an open broker", open, `{"set":{"seat/1":1}}`, "set seat/1 1 ttl=10m0s claim group=100"},
		{"claim, the backend", backend(), `{"set":{"seat/1":1}}`, "set seat/1 1 group=100"},
		{"grant", granted, `{"set":{"doc/1":1}}`, "set doc/1 1"},
		{"anyone", anonymous(), `{"set":{"any/1":1}}`, "set any/1 1"},
		{"a part", amy(), `{"set":{"p/3/hat":1}}`, "set p/3/hat 1 of=n/3 held"},
		{"a part, delete", amy(), `{"del":["p/3/hat"]}`, "del p/3/hat of=n/3 held"},
		{"a part, the backend", backend(), `{"set":{"p/3/hat":1}}`, "set p/3/hat 1 of=n/3"},
		{"a closed pattern, the backend", backend(), `{"set":{"closed/1":1,"$x":2,"$$y":3,"other":4}}`, "set closed/1 1; set $x 2; set $$y 3; set other 4"},

		// Leases.
		{"a shorter ttl", amy(), `{"set":{"seat/1":1},"ttl":0.5}`, "set seat/1 1 ttl=500ms claim group=100"},
		{"the longest ttl", amy(), `{"touch":["seat/1"],"ttl":600}`, "touch seat/1 ttl=10m0s claim group=100"},
		{"touch renews", amy(), `{"touch":["seat/1"]}`, "touch seat/1 ttl=10m0s claim group=100"},
		{"a tiny ttl", amy(), `{"set":{"any/1":1},"ttl":1e-9}`, "set any/1 1 ttl=1ms"},
		{"any ttl without a rule", amy(), `{"set":{"any/1":1},"ttl":86400}`, "set any/1 1 ttl=24h0m0s"},
		{"no lease", amy(), `{"touch":["any/1"],"ttl":0}`, "touch any/1"},
		{"no lease, the backend", backend(), `{"set":{"seat/1":1},"ttl":0}`, "set seat/1 1 group=100"},
		{"a long lease, the backend", backend(), `{"set":{"seat/1":1},"ttl":86400}`, "set seat/1 1 ttl=24h0m0s group=100"},
		{"add has a lease", amy(), `{"add":{"seat/1":1}}`, "add seat/1 1 ttl=10m0s claim group=100"},

		// Owners.
		{"own", amy(), `{"set":{"seat/1":1},"own":true}`, "set seat/1 1 ttl=10m0s own grace=1s claim group=100"},
		{"own, grace: never", amy(), `{"set":{"n/3":1},"own":true}`, "set n/3 1 own grace=never"},
		{"own: false", noState, `{"touch":["any/1"],"own":false}`, "touch any/1 disown"},
		{"own: false, the backend", backend(), `{"touch":["member/amy"],"own":false}`, "touch member/amy disown group=4"},
		{"own, the backend for a client", onBehalf, `{"set":{"x":1},"own":true}`, "set x 1 own grace=1m0s"},

		// Parents, conditions.
		{"a parent", backend(), `{"set":{"$$user/amy":3,"a":1},"of":{"$$user/amy":"n/3"}}`, "set $$user/amy 3 of=n/3; set a 1"},
		{"a parent instead of the rule's", backend(), `{"add":{"p/3/hat":1},"of":{"p/3/hat":"n/4"}}`, "add p/3/hat 1 of=n/4"},
		{"conditions", amy(), `{"set":{"any/1":1},"if":{"a":5,"b":0,"c":true,"$d": 7}}`, "set any/1 1; if a 5; if b absent; if c exists; if $d 7"},
		{"the largest id", amy(), `{"set":{"any/1":1},"if":{"a":9223372036854775807}}`, "set any/1 1; if a 9223372036854775807"},
		{"a hidden field, the backend", backend(), `{"del":["a"],"if":{"$$x":true}}`, "del a; if $$x exists"},
	} {
		u, err := Build(testSet(t), c.w, "room:1", decode(t, c.change), nil, testLimits, 200)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := shown(u); got != c.want {
			t.Errorf("%s: got  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	noState, granted := amy(), amy()
	noState.HasState = false
	if err := granted.Grants.Add("room:1", "sub pub presence history state"); err != nil {
		t.Fatal(err)
	}
	long := `"` + strings.Repeat("x", 62) + `"`
	for _, c := range []struct {
		name    string
		w       *Writer
		channel string
		change  string
		code    wire.ErrorCode
		want    string
	}{
		{"nothing", amy(), "room:1", `{"if":{"a":1}}`, wire.BadRequest, "neither data nor a field"},
		{"a closed channel", backend(), "news", `{"set":{"a":1}}`, wire.Forbidden, "channel news: not allowed to change fields: no namespace fits"},
		{"a system channel", backend(), "$all", `{"set":{"a":1}}`, wire.Forbidden, "channel $all: not allowed to change fields: it is a system channel"},
		{"the prefix alone", backend(), "room:", `{"set":{"a":1}}`, wire.Forbidden, "field a: not allowed to write: namespace room:*: nothing follows"},
		{"too many operations", backend(), "room:1", `{"set":{"a":1,"b":1},"del":["c","d"],"touch":["e"]}`, wire.TooLarge, "5 fields are changed, at most 4"},
		{"too many conditions", backend(), "room:1", `{"del":["a"],"if":{"a":0,"b":0,"c":0,"d":0,"e":0}}`, wire.TooLarge, "if: 5 conditions, at most 4"},
		{"too large in all", backend(), "room:1", `{"set":{"a":` + long + `,"b":` + long + `,"c":` + long + `,"dddddd":1}}`, wire.TooLarge, "data and fields: 202 bytes, at most 200"},

		// Names.
		{"an empty name", backend(), "room:1", `{"del":[""]}`, wire.BadRequest, "field: the name is empty"},
		{"a bad name", backend(), "room:1", `{"touch":["a b"]}`, wire.BadRequest, `field "a b": character ' '`},
		{"a long name", backend(), "room:1", `{"del":["` + strings.Repeat("a", 129) + `"]}`, wire.BadRequest, "129 bytes"},
		{"set and del", backend(), "room:1", `{"set":{"a":1},"del":["a"]}`, wire.BadRequest, "field a: it appears twice"},
		{"del and del", backend(), "room:1", `{"del":["a","a"]}`, wire.BadRequest, "field a: it appears twice"},
		{"add and touch", backend(), "room:1", `{"add":{"a":1},"touch":["a"]}`, wire.BadRequest, "field a: it appears twice"},

		// Rights.
		{"no pattern", granted, "room:1", `{"set":{"x":1}}`, wire.Forbidden, "field x: not allowed to write: namespace room:*: no pattern fits"},
		{"nobody", granted, "room:1", `{"del":["closed/1"]}`, wire.Forbidden, "field closed/1: not allowed to write"},
		{"another user", amy(), "room:1", `{"set":{"member/bob":1}}`, wire.Forbidden, "field member/bob: not allowed to write: namespace room:*, fields member/{user}: the name has another user"},
		{"no user", anonymous(), "room:1", `{"set":{"member/tab":1}}`, wire.Forbidden, "field member/tab: "},
		{"no grant to write", granted, "room:1", `{"touch":["doc/1"]}`, wire.Forbidden, "field doc/1: not allowed to write: namespace room:*, fields doc/*: write is open to grant, and no grant"},
		{"a claim without a user", anonymous(), "room:1", `{"set":{"seat/1":1}}`, wire.Forbidden, "field seat/1: not allowed to write: namespace room:*, fields seat/*: write is open to claim, and the client has no user"},
		{"a backend field", granted, "room:1", `{"set":{"$x":1}}`, wire.Forbidden, "field $x: not allowed to write: namespace room:*: a field that begins with $"},
		{"a limit of a group", granted, "room:1", `{"add":{"$max/seat/":1}}`, wire.Forbidden, "field $max/seat/: "},
		{"a hidden field", granted, "room:1", `{"del":["$$x"]}`, wire.Forbidden, "field $$x: "},
		{"one of several", amy(), "room:1", `{"set":{"any/1":1,"x":1}}`, wire.Forbidden, "field x: "},

		// Values and numbers.
		{"over the limit", backend(), "room:1", `{"set":{"a":"x` + long[1:] + `}}`, wire.TooLarge, "field a: 65 bytes, at most 64"},
		{"over the pattern's bytes", amy(), "room:1", `{"set":{"seat/1":"1234567"}}`, wire.TooLarge, "field seat/1: 9 bytes, at most 8"},
		{"also for the backend", backend(), "room:1", `{"set":{"seat/1":"1234567"}}`, wire.TooLarge, "field seat/1: 9 bytes, at most 8"},
		{"a fraction", backend(), "room:1", `{"add":{"a":1.5}}`, wire.BadRequest, "field a: add: 1.5 is not a whole number within ±9007199254740991"},
		{"an exponent", backend(), "room:1", `{"add":{"a":1e3}}`, wire.BadRequest, "field a: add: 1e3 is not"},
		{"a text", backend(), "room:1", `{"add":{"a":"1"}}`, wire.BadRequest, `field a: add: "1" is not`},
		{"null", backend(), "room:1", `{"add":{"a":null}}`, wire.BadRequest, "field a: add: null is not"},
		{"a list", backend(), "room:1", `{"add":{"a":[1]}}`, wire.BadRequest, "field a: add: [1] is not"},
		{"a large number", backend(), "room:1", `{"add":{"a":9007199254740992}}`, wire.BadRequest, "field a: add: 9007199254740992 is not"},
		{"a large bound", backend(), "room:1", `{"add":{"a":{"by":1,"min":-9007199254740992}}}`, wire.BadRequest, "field a: min: -9007199254740992 is not"},
		{"a bound that is null", backend(), "room:1", `{"add":{"a":{"by":1,"max":null}}}`, wire.BadRequest, "field a: max: null is not"},
		{"no by", backend(), "room:1", `{"add":{"a":{"max":1}}}`, wire.BadRequest, "field a: add: by is missing"},
		{"empty bounds", backend(), "room:1", `{"add":{"a":{"by":1,"min":2,"max":1}}}`, wire.BadRequest, "field a: add: min is above max"},
		{"by twice", backend(), "room:1", `{"add":{"a":{"by":1,"by":2}}}`, wire.BadRequest, "field a: field by: it appears twice"},
		{"an unknown operator", backend(), "room:1", `{"add":{"a":{"by":1,"mul":2}}}`, wire.BadRequest, `field a: add: "mul" is none of by, min and max`},

		// Leases and owners.
		{"ttl below zero", backend(), "room:1", `{"set":{"a":1},"ttl":-1}`, wire.BadRequest, "ttl: -1 is not within 0 and"},
		{"a very long ttl", backend(), "room:1", `{"set":{"a":1},"ttl":1e300}`, wire.BadRequest, "ttl: 1e+300 is not within 0 and"},
		{"ttl above the rule's", amy(), "room:1", `{"touch":["seat/1"],"ttl":600.1}`, wire.BadRequest, "field seat/1: the ttl must be above 0 and at most 10m0s"},
		{"no lease against the rule", amy(), "room:1", `{"set":{"seat/1":1},"ttl":0}`, wire.BadRequest, "field seat/1: the ttl must be above 0"},
		{"own without state", noState, "room:1", `{"set":{"any/1":1},"own":true}`, wire.BadRequest, "field any/1: a client that owns it must be subscribed"},
		{"own: always without state", noState, "room:1", `{"set":{"member/amy":1}}`, wire.BadRequest, "field member/amy: a client that owns it must be subscribed"},
		{"own: false against the rule", amy(), "room:1", `{"touch":["member/amy"],"own":false}`, wire.Forbidden, "field member/amy: its rule says own: always"},
		{"own over HTTP", backend(), "room:1", `{"set":{"a":1},"own":true}`, wire.BadRequest, "field a: own needs the connection of a client"},

		// Parents and conditions.
		{"a client names a parent", amy(), "room:1", `{"set":{"any/1":1},"of":{"any/1":"n/3"}}`, wire.Forbidden, "of: only the backend"},
		{"a parent of nothing", backend(), "room:1", `{"set":{"a":1},"of":{"b":"n/3"}}`, wire.BadRequest, "of: field b is not set by this change"},
		{"a parent of a deleted field", backend(), "room:1", `{"del":["a"],"of":{"a":"n/3"}}`, wire.BadRequest, "of: field a is not set"},
		{"a bad parent", backend(), "room:1", `{"set":{"a":1},"of":{"a":""}}`, wire.BadRequest, "field: the name is empty"},
		{"its own parent", backend(), "room:1", `{"set":{"a":1},"of":{"a":"a"}}`, wire.BadRequest, "field a: it cannot be a part of itself"},
		{"a condition on a hidden field", amy(), "room:1", `{"set":{"any/1":1},"if":{"$$x":0}}`, wire.Forbidden, "if: field $$x: only the backend may see it"},
		{"a condition without the right to read", amy(), "blind:1", `{"set":{"any/1":1},"if":{"any/1":0}}`, wire.Forbidden, "if: field any/1: a condition needs the right to read the state: namespace blind:*: state is open to the backend only"},
		{"a condition of a client without a user", anonymous(), "room:1", `{"set":{"any/1":1},"if":{"any/1":0}}`, wire.Forbidden, "if: field any/1: a condition needs"},
		{"a condition on a bad name", backend(), "room:1", `{"del":["a"],"if":{"a b":0}}`, wire.BadRequest, `field "a b"`},
		{"an id below zero", backend(), "room:1", `{"del":["a"],"if":{"a":-1}}`, wire.BadRequest, "if: field a: -1 is neither an id nor 0 nor true"},
		{"false", backend(), "room:1", `{"del":["a"],"if":{"a":false}}`, wire.BadRequest, "if: field a: false is neither"},
		{"a text as an id", backend(), "room:1", `{"del":["a"],"if":{"a":"7"}}`, wire.BadRequest, `if: field a: "7" is neither`},
		{"an object as an id", backend(), "room:1", `{"del":["a"],"if":{"a":{"id":7}}}`, wire.BadRequest, `if: field a: {"id":7} is neither`},
		{"an id that is too large", backend(), "room:1", `{"del":["a"],"if":{"a":9223372036854775808}}`, wire.BadRequest, "if: field a: 9223372036854775808 is neither"},
	} {
		_, err := Build(testSet(t), c.w, c.channel, decode(t, c.change), nil, testLimits, 200)
		refused, ok := errors.AsType[*wire.Error](err)
		if !ok || refused.Code != c.code || !strings.Contains(refused.Message, c.want) {
			t.Errorf("%s: %v, want %s: %s", c.name, err, c.code, c.want)
		}
	}
}

// TestUpdate checks the parts of an update that are not operations.
func TestUpdate(t *testing.T) {
	data := []byte(`{"move":"e4"}`)
	unlimited := state.Limits{Keep: time.Hour}
	for _, c := range []struct {
		name    string
		w       *Writer
		channel string
		limits  StateLimits
		want    state.Update
	}{
		{"the backend", backend(), "room:1", StateLimits{}, state.Update{Writer: "b", Limits: unlimited}},
		{"a user", amy(), "room:1", StateLimits{}, state.Update{Writer: "u:amy", Client: "amy/tab", Generation: 7, Server: "s1", Limits: unlimited}},
		{"a client without a user", anonymous(), "room:1", StateLimits{}, state.Update{Writer: "c:tab", Client: "tab", Limits: unlimited}},
		{"limits", backend(), "blind:1", testLimits, state.Update{Writer: "b", Limits: state.Limits{Fields: 1024, Bytes: 1 << 20, Owned: 16}}},
	} {
		u, err := Build(testSet(t), c.w, c.channel, new(wire.Change), data, c.limits, 0)
		if err != nil {
			t.Fatal(err)
		}
		c.want.Data = data
		if got, want := fmt.Sprintf("%+v", *u), fmt.Sprintf("%+v", c.want); got != want {
			t.Errorf("%s: got  %s\nwant %s", c.name, got, want)
		}
	}
}

// TestWithoutNamespaces checks the rights of clients in brokers without namespaces.
func TestWithoutNamespaces(t *testing.T) {
	for _, c := range []struct {
		name       string
		set        *namespace.Set
		w          *Writer
		write, own bool
	}{
		{"open", namespace.Open(), anonymous(), true, false},
		{"open, subscribed with state", namespace.Open(), amy(), true, true},
		{"keys", namespace.Keyed(false), amy(), false, false},
		{"keys, client_publish", namespace.Keyed(true), amy(), true, true},
		{"keys, client_publish, no user", namespace.Keyed(true), anonymous(), false, false},
	} {
		for change, want := range map[string]bool{
			`{"set":{"a/b":1},"ttl":5,"if":{"c":0}}`: c.write, `{"add":{"n":1},"own":true}`: c.own, `{"del":["$x"]}`: false,
		} {
			if _, err := Build(c.set, c.w, "news", decode(t, change), nil, testLimits, 200); (err == nil) != want {
				t.Errorf("%s: %s: %v", c.name, change, err)
			}
		}
		if _, err := Build(c.set, backend(), "news", decode(t, `{"set":{"$x":1}}`), nil, testLimits, 200); err != nil {
			t.Errorf("%s: the backend: %v", c.name, err)
		}
	}
}

// TestBuildForMembers checks the writer that a change shows, the field that it needs, and the limit
// of the fields with one part.
func TestBuildForMembers(t *testing.T) {
	set, err := namespace.New([]namespace.Rule{{
		Name: "room:*", State: namespace.Users, Needs: "$$user/{user}", By: "$$user/{user}",
		Fields: []namespace.FieldRule{{Pattern: "p/{n}/*", Write: namespace.Users, Of: "m/{n}", Max: 3}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := amy()
	w.User = "a/y"
	u, err := Build(set, w, "room:1", decode(t, `{"set":{"p/7/x":1}}`), nil, testLimits, 200)
	if err != nil {
		t.Fatal(err)
	}
	if op := u.Ops[0]; u.ByField != "$$user/a%2Fy" || u.If[0].Field != u.ByField || op.Group != "p/7/" || op.GroupMax != 3 || op.Parent != "m/7" {
		t.Errorf("the update is %+v", u)
	}
	if u, err = Build(set, backend(), "room:1", decode(t, `{"set":{"p/7/x":1}}`), nil, testLimits, 200); err != nil || u.ByField != "" || len(u.If) > 0 {
		t.Errorf("the update of the backend is %+v, %v", u, err)
	}
}
