package state

import (
	"strings"
	"testing"
	"time"
)

func TestCounter(t *testing.T) {
	x := newScript(t)
	numbered := func(op Op) Op { return op.with(func(op *Op) { op.Numbered = true }) }
	join := func(user string, ops ...Op) string {
		u := from(user+"/tab", 1, append(ops, set("member/{n}", `"{n}"`).own(time.Minute), set("$$n/{n}", `"`+user+`"`).of("member/{n}"),
			numbered(set("$$user/"+user, "{n}")).of("member/{n}"))...)
		u.Counter = "$$next"
		return x.apply(u)
	}
	x.expect(join("amy"), `{"set":{"$$n/1":"amy","$$next":1,"$$user/amy":1,"member/1":"{n}"},"own":{"member/1":["amy/tab"]},"by":"amy/tab"}`)
	x.expect(join("bob", set("x", "1").claimed()),
		`{"set":{"$$n/2":"bob","$$next":2,"$$user/bob":2,"member/2":"{n}","x":1},"own":{"member/2":["bob/tab"]},"by":"bob/tab"}`)
	x.expect(join("cat", set("x", "2").claimed()), "conflict: field x: another user holds it")
	x.expect(x.ops(del("member/1")), `{"del":["member/1","$$n/1","$$user/amy"]}`)
	x.expect(x.apply(Update{Counter: "$$next", If: []Condition{{Field: "x", Kind: IsAbsent}}}), "conflict: field x: it does not meet the condition")
	x.expect(x.apply(Update{Counter: "x", Take: 3, Ops: []Op{numbered(set("a", `{"to":[{n2},{n3},"{n4}"]}`)), add("b/{n}", 5, 0, 5), touch("$$next", 0)}}),
		`{"set":{"a":{"to":[3,4,"{n4}"]},"b/2":5,"x":4},"until":{"$$next":0}}`)
	x.expect(x.apply(Update{Counter: "$$n/2", Ops: []Op{touch("absent", 0)}}), "bad_request: field $$n/2: its value is not a whole number")
	x.expect(x.apply(Update{Counter: "x", Ops: []Op{touch("a/{n}", 0)}}), "not_found: field a/5: there is no such field")
	x.expect(x.apply(Update{Counter: "x", Ops: []Op{add("a/{n}", 1, 0, 0)}}), "limit: field a/5: the result 1 is out of bounds")
	x.expect(x.ops(add("$$next", MaxNumber-2, 0, MaxNumber)), `{"set":{"$$next":9007199254740991}}`)
	x.expect(join("dan"), "limit: field $$next: the result 9007199254740992 is out of bounds")
}

// TestCounterKeepsUpdate checks that the caller can use an update again.
func TestCounterKeepsUpdate(t *testing.T) {
	x := newScript(t)
	u := Update{Counter: "n", Ops: []Op{set("a/{n}", "1")}}
	x.expect(x.apply(u), `{"set":{"a/1":1,"n":1}}`)
	x.expect(x.apply(u), `{"set":{"a/2":1,"n":2}}`)
}

// TestCounterLimits checks that a counter that the update creates counts like another field.
func TestCounterLimits(t *testing.T) {
	x := newScript(t)
	one := Update{Counter: "count/a", Ops: []Op{set("b/{n}", "1").max(1)}}
	one.Limits.Fields = 1
	x.expect(x.apply(one), "full: field count/a: the channel would have 2 fields, at most 1 are allowed")
	one.Limits.Fields = 2
	x.expect(x.apply(one), `{"set":{"b/1":1,"count/a":1}}`)
	x.expect(x.apply(one), "full: group b/ would have 2 fields, at most 1 are allowed")
	x.ops(set("$max/count/", "1"))
	x.expect(x.apply(Update{Counter: "count/c"}), "full: group count/ would have 2 fields, at most 1 are allowed")
	x.expect(x.apply(Update{Counter: "m", Take: MaxTake + 1, Ops: []Op{set("c/{n64}", "1")}}), `{"set":{"c/64":1,"m":64}}`)
}

// TestCounterKeepsRest checks that an existing counter keeps its lease, its owners and its holder.
func TestCounterKeepsRest(t *testing.T) {
	x := newScript(t)
	x.by("amy/tab", set("n", "7").ttl(time.Minute).own(0))
	x.expect(x.apply(Update{Counter: "n"}), `{"set":{"n":8},"until":{"n":61000}}`)
	if f := x.s.Get(x.now, "n"); f.Holder != ClientHolder("amy/tab") || strings.Join(f.Owners, " ") != "amy/tab" {
		t.Errorf("the counter is %+v", f)
	}
}

// TestHolderOfOperation checks that the operations of one update may have several holders.
func TestHolderOfOperation(t *testing.T) {
	x := newScript(t)
	held := func(op Op, holder string) Op { return op.with(func(op *Op) { op.Holder = holder }) }
	amy, bob := UserHolder("amy"), UserHolder("bob")
	u := Update{
		Writer: BackendHolder, Client: "amy/tab", Generation: 1, Server: "s1",
		Ops: []Op{held(set("member/1", "1"), amy).own(time.Minute), set("$$user/amy", "1").of("member/1"), held(add("n", 1, 0, 9), amy)},
	}
	x.expect(x.apply(u), `{"set":{"$$user/amy":1,"member/1":1,"n":1},"own":{"member/1":["amy/tab"]},"by":"amy/tab"}`)
	for name, want := range map[string]string{"member/1": amy, "$$user/amy": BackendHolder, "n": amy} {
		if f := x.s.Get(x.now, name); f.Holder != want {
			t.Errorf("field %s: the holder is %s, want %s", name, f.Holder, want)
		}
	}
	x.expect(x.ops(held(set("n", "2"), bob).claimed()), "conflict: field n: another user holds it")
	x.expect(x.ops(held(set("n", "2"), amy).claimed()), `{"set":{"n":2}}`)
	x.expect(x.ops(held(set("p/1/x", "2"), bob).ofHeld("member/1")), "forbidden: field p/1/x: another user holds its parent member/1")
	x.expect(x.ops(held(set("p/1/x", "2"), amy).ofHeld("member/1")), `{"set":{"p/1/x":2}}`)
	x.expect(x.ops(held(set("a", "1"), bob), held(set("b", "1"), amy).ofHeld("a")), "forbidden: field b: another user holds its parent a")
	x.expect(x.ops(held(set("a", "1"), bob), held(set("b", "1"), bob).ofHeld("a")), `{"set":{"a":1,"b":1}}`)
	x.expect(x.ops(held(del("b"), bob).ofHeld("a"), held(set("a", "2"), amy)), "forbidden: field b: another user holds its parent a")
	x.expect(x.ops(held(del("b"), bob).ofHeld("a"), set("c", "1")), `{"del":["b"],"set":{"c":1}}`)
}
