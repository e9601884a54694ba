package state

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// TestLeases checks how operations change the lease and the id.
func TestLeases(t *testing.T) {
	x := newScript(t)
	x.expect(x.ops(set("a", "1").ttl(10*ms), add("n", 1, 0, 9).ttl(10*ms)), `{"set":{"a":1,"n":1},"until":{"a":1010,"n":1010}}`)
	x.expect(x.at(1).ops(touch("a", 20*ms)), `{"until":{"a":1021}}`)
	x.expect(x.ops(add("n", 1, 0, 9).ttl(time.Hour)), `{"set":{"n":2},"until":{"n":1010}}`)
	x.expect(x.shown(), `{"a":[1,1,1021],"n":[3,2,1010]}`)
	x.expect(x.ops(touch("n", 0), set("a", "2")), `{"set":{"a":2},"until":{"n":0}}`)
	x.expect(x.at(9999).sweep(), "")
	x.expect(x.ops(set("a", "3").ttl(time.Microsecond)), `{"set":{"a":3},"until":{"a":11000}}`)
	x.due(11000)
}

// TestExpiredIsAbsent checks that a field is absent from the moment of its end, for readers and
// writers, and that one entry has its end and the change that found it.
func TestExpiredIsAbsent(t *testing.T) {
	x := newScript(t)
	x.by("amy", set("seat/1", "1").claimed().ttl(10*ms).max(1))
	x.at(9)
	if x.s.Get(x.now, "seat/1") == nil {
		t.Error("the field has ended too early")
	}
	x.at(10)
	names, _, _ := x.s.Read(x.now, "", "", 0, 0)
	if x.s.Get(x.now, "seat/1") != nil || len(names) != 0 {
		t.Errorf("readers see %v", names)
	}
	bob := from("bob", 1, set("seat/1", "2").claimed().max(1))
	bob.If = []Condition{{Field: "seat/1", Kind: IsAbsent}}
	x.expect(x.apply(bob), `{"gone":{"seat/1":"expired"},"set":{"seat/1":2},"by":"bob"}`)
	x.expect(x.at(99).sweep(), "")
}

// TestClaim checks that anyone may take a free field, and only its holder or the backend may change
// it.
func TestClaim(t *testing.T) {
	x := newScript(t)
	const refused = "conflict: field seat: another user holds it"
	x.expect(x.by("amy", set("seat", "1").claimed()), `{"set":{"seat":1},"by":"amy"}`)
	x.expect(x.by("bob", set("seat", "2").claimed()), refused)
	x.expect(x.by("amy", add("seat", 1, 0, 9).claimed()), `{"set":{"seat":2},"by":"amy"}`)
	x.expect(x.ops(add("seat", 1, 0, 9)), `{"set":{"seat":3}}`)
	x.expect(x.by("amy", touch("seat", 0).claimed()), `{"until":{"seat":0},"by":"amy"}`)
	x.expect(x.ops(set("seat", "4")), `{"set":{"seat":4}}`)
	x.expect(x.by("amy", del("seat").claimed()), refused)
	x.expect(x.ops(del("seat")), `{"del":["seat"]}`)
	x.expect(x.by("bob", set("seat", "5").claimed()), `{"set":{"seat":5},"by":"bob"}`)
}

// TestParts checks that parts end with their parent, for the same reason.
func TestParts(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(x *script) string
		want string
	}{
		{"delete", func(x *script) string { return x.ops(del("m")) }, `{"del":["m","p/a","p/b"]}`},
		{"delete both", func(x *script) string { return x.ops(del("p/b"), del("m")) }, `{"del":["p/b","m","p/a"]}`},
		{"expiry", func(x *script) string { return x.at(50_000).sweep() }, `{"gone":{"m":"expired","p/a":"expired","p/b":"expired"}}`},
		{"end of the grace period", func(x *script) string { return x.end("amy", 1) + x.at(15_000).sweep() },
			`{"away":{"m":16000}}{"gone":{"m":"left","p/a":"left","p/b":"left"}}`},
		{"unsubscribed", func(x *script) string { return x.disown("amy", 1) }, `{"gone":{"m":"left","p/a":"left","p/b":"left"}}`},
		{"a part keeps its parent", func(x *script) string { return x.ops(set("p/a", "2")) + x.ops(del("m")) },
			`{"set":{"p/a":2}}{"del":["m","p/a","p/b"]}`},
		{"a part moves to another parent", func(x *script) string {
			return x.ops(del("m"), touch("p/a", 0).of("other"), del("p/b")) + x.ops(del("other"))
		}, `{"del":["m","p/b"],"until":{"p/a":0}}{"del":["other","p/a"]}`},
		{"a part goes on without its siblings", func(x *script) string { return x.ops(del("p/b")) + x.ops(del("m")) }, `{"del":["p/b"]}{"del":["m","p/a"]}`},
		{"a part whose parent ends", func(x *script) string { return x.ops(del("m"), set("p/a", "2")) },
			`not_found: field p/a: its parent m does not exist`},
		{"a parent that becomes a part", func(x *script) string { return x.ops(touch("m", 0).of("other")) },
			`bad_request: field m: a field that is part of another one cannot have parts`},
		{"the limits count what is left", func(x *script) string {
			return x.apply(Update{Ops: []Op{del("m"), set("p/c", "1").max(1), set("p/d", "1").max(1)}})
		}, `full: group p/ would have 2 fields, at most 1 are allowed`},
		{"the places of parts are free", func(x *script) string {
			return x.apply(Update{Ops: []Op{del("m"), set("p/c", "1").max(1)}, Limits: Limits{Fields: 2, Bytes: 10}})
		}, `{"del":["m","p/a","p/b"],"set":{"p/c":1}}`},
		{"a part that is deleted with its parent frees its bytes once", func(x *script) string {
			return x.apply(Update{Ops: []Op{del("m"), del("p/a"), set("big", `"123456"`)}, Limits: Limits{Bytes: 16}})
		}, `too_large: the fields of the channel would have 17 bytes, at most 16 are allowed`},
		{"a part that moves still counts", func(x *script) string {
			return x.apply(Update{Ops: []Op{del("m"), set("p/a", "2").of("other"), set("p/c", "1").max(1)}})
		}, `full: group p/ would have 2 fields, at most 1 are allowed`},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newScript(t)
			x.by("amy", set("m", "1").own(grace).ttl(50*time.Second), set("p/a", "1").ofHeld("m"), set("other", "1"))
			x.by("amy", set("p/b", "1").ofHeld("m"))
			x.expect(test.do(x), test.want)
		})
	}
}

// TestDeletedParts checks that only the holder of a field deletes its parts.
func TestDeletedParts(t *testing.T) {
	x := newScript(t)
	x.by("amy", set("m", "1"), set("other", "1"))
	x.by("bob", set("n", "1"), set("lone", "1"))
	x.ops(set("p/a", "1").of("m"), set("p/b", "1").of("m"), set("p/c", "1").of("m"))
	const held = "forbidden: field p/a: another user holds its parent m"
	x.expect(x.by("bob", del("p/a").ofHeld("m")), held)
	x.expect(x.by("bob", del("p/a").ofHeld("n")), held)
	x.expect(x.by("bob", del("p/a").ofHeld("")), held)
	x.expect(x.by("bob", del("m"), del("p/a").ofHeld("m")), held)
	x.expect(x.by("bob", del("p/z").ofHeld("m")), `{"del":["p/z"],"by":"bob"}`)
	x.expect(x.by("amy", del("p/a").ofHeld("m")), `{"del":["p/a"],"by":"amy"}`)
	x.expect(x.by("bob", set("m", "2"), del("p/b").ofHeld("m")), `{"del":["p/b"],"set":{"m":2},"by":"bob"}`)
	x.expect(x.by("bob", del("m"), del("p/c").ofHeld("m")), `{"del":["m","p/c"],"by":"bob"}`)

	x.expect(x.by("bob", del("lone").ofHeld("other")), "forbidden: field lone: another user holds its parent other")
	x.expect(x.by("bob", del("lone").ofHeld("absent")), "not_found: field lone: its parent absent does not exist")
	x.expect(x.by("amy", del("lone").ofHeld("other")), `{"del":["lone"],"by":"amy"}`)
	x.expect(x.by("amy", del("n").ofHeld("")), `{"del":["n"],"by":"amy"}`)
}

// TestLoweredMax checks that lowering the limit of a group removes nothing.
func TestLoweredMax(t *testing.T) {
	x := newScript(t)
	const full = "full: group m/ would have %d fields, at most %d are allowed"
	x.ops(set("m/1", "1").max(3), set("m/2", "1").max(3))
	x.expect(x.ops(set("$max/m/", "1")), `{"set":{"$max/m/":1}}`)
	x.expect(x.ops(set("m/2", "2").max(3)), `{"set":{"m/2":2}}`)
	x.expect(x.ops(set("m/3", "1").max(3)), fmt.Sprintf(full, 3, 1))
	x.expect(x.ops(del("m/1"), set("m/3", "1").max(3)), fmt.Sprintf(full, 2, 1))
	x.expect(x.ops(del("m/1"), del("m/2"), set("m/3", "1").max(3)), `{"del":["m/1","m/2"],"set":{"m/3":1}}`)
	x.expect(x.ops(set("$max/m/", "9"), set("m/4", "1").max(1)), fmt.Sprintf(full, 2, 1))
	x.expect(x.ops(del("$max/m/"), set("m/4", "1").max(2)), `{"del":["$max/m/"],"set":{"m/4":1}}`)
	x.expect(x.ops(set("$max/m/", `"x"`), set("m/5", "1")), `{"set":{"$max/m/":"x","m/5":1}}`)
}

// TestKeep checks the end of a state that is not written for its keeping time.
func TestKeep(t *testing.T) {
	keep := func(keep time.Duration, ops ...Op) Update { return Update{Ops: ops, Limits: Limits{Keep: keep}} }
	x := newScript(t)
	x.apply(keep(100*ms, set("a", "1"), set("b", "1").ttl(time.Hour)))
	x.expect(x.at(50).apply(keep(100*ms, set("c", "1"))), `{"set":{"c":1}}`)
	x.by("amy", touch("x", 0)) // refused: it does not count
	x.expect(x.at(149).sweep(), "")
	x.due(1150)
	if names, _, _ := x.s.Read(1150, "", "", 0, 0); len(names) != 0 || x.s.Get(1150, "a") != nil {
		t.Errorf("readers see %v", names)
	}
	x.expect(x.at(150).sweep(), `{"cleared":true}`)
	x.due(0)
	x.expect(x.at(999).sweep(), "")

	x.apply(keep(100*ms, set("a", "1"), set("b", "1").ttl(ms)))
	x.due(2000)
	x.expect(x.at(1099).ops(touch("a", 0)), `{"cleared":true} not_found: field a: there is no such field`)
	x.apply(keep(100*ms, set("a", "1")))
	x.expect(x.at(1199).ops(set("b", "2")), `{"cleared":true,"set":{"b":2}}`)
	x.expect(x.at(9999).sweep(), "")
}

// TestLargeEntries checks that the entries of many ends have about maxEntry bytes, and that all of
// them follow the previous entry.
func TestLargeEntries(t *testing.T) {
	fill := func(ttl time.Duration) *script {
		x := newScript(t)
		var ops []Op
		for i := range 1024 {
			ops = append(ops, set(fmt.Sprintf("%s/%04d", strings.Repeat("x", 123), i), "1").ttl(ttl).own(GraceNever))
		}
		x.by("amy", ops...)
		return x
	}
	check := func(name string, x *script, r Result) {
		t.Helper()
		fields := 0
		for i, logged := range r.Entries {
			if size := len(logged.Entry.Encode()); size > maxEntry+maxEntry/8 {
				t.Errorf("%s: entry %d has %d bytes", name, i, size)
			}
			if e := logged.Entry; (e.Data != nil || e.By != "") && i < len(r.Entries)-1 {
				t.Errorf("%s: entry %d has a part of the update", name, i)
			}
			fields += len(logged.Entry.Gone) + len(logged.Entry.Away) + len(logged.Entry.Back)
		}
		if len(r.Entries) < 3 || fields != 1024 {
			t.Errorf("%s: %d entries have %d fields", name, len(r.Entries), fields)
		}
		x.logged(r)
	}
	x := fill(10 * ms)
	x.at(2000)
	r, _ := x.s.Apply(&Update{Ops: []Op{set("a", "1")}, Data: []byte("7"), Client: "amy", Generation: 1}, x.now, x.next)
	check("expiry", x, r)
	x = fill(0)
	check("end", x, x.s.End(x.now, x.next, Connection{"amy", 1, "s1"}))
	check("back", x, first(x.s.Back(x.now, x.next, Connection{"amy", 2, "s1"})))
	check("disown", x, x.s.Disown(x.now, x.next, Connection{"amy", 2, "s1"}))
}

func first(r Result, _ bool) Result { return r }
