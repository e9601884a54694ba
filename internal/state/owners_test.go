package state

import (
	"testing"
	"time"
)

const grace = 15 * time.Second

// TestGrace checks what happens to an owned field when its owner leaves, for each kind of grace
// period, and when the owner is back.
func TestGrace(t *testing.T) {
	for _, test := range []struct {
		name  string
		grace time.Duration
		lease time.Duration
		end   string // the entry of the end
		left  string // the entry of a sweep after 15 s
		back  string // the entry of a return after 14 s, instead
	}{
		{"none", 0, 0, `{"gone":{"f":"left"}}`, ``, ``},
		{"none, with a lease", 0, time.Hour, `{"gone":{"f":"left"}}`, ``, ``},
		{"15 s", grace, 0, `{"away":{"f":16000}}`, `{"gone":{"f":"left"}}`, `{"back":["f"]}`},
		{"15 s, with a longer lease", grace, time.Hour, `{"away":{"f":16000}}`, `{"gone":{"f":"left"}}`, `{"until":{"f":3601000},"back":["f"]}`},
		{"15 s, with an equal lease", grace, grace, `{"away":{"f":16000}}`, `{"gone":{"f":"left"}}`, `{"until":{"f":16000},"back":["f"]}`},
		{"15 s, with a shorter lease", grace, 14500 * time.Millisecond, `{"away":{"f":15500}}`, `{"gone":{"f":"expired"}}`, `{"until":{"f":15500},"back":["f"]}`},
		{"never", GraceNever, 0, `{"away":{"f":0}}`, ``, `{"back":["f"]}`},
		{"never, with a lease", GraceNever, grace, `{"away":{"f":16000}}`, `{"gone":{"f":"expired"}}`, `{"until":{"f":16000},"back":["f"]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			begin := func() *script {
				x := newScript(t)
				x.by("amy", set("f", "1").own(test.grace).ttl(test.lease))
				x.expect(x.end("amy", 1), test.end)
				x.expect(x.end("amy", 1), "")
				return x
			}
			x := begin()
			x.expect(x.at(14499).sweep(), "")
			x.expect(x.at(15000).sweep(), test.left)
			x = begin()
			x.expect(x.at(14000).back("amy", 2, "s1"), test.back)
			x.expect(x.back("amy", 2, "s1"), "")
		})
	}
}

// TestTwoDevices checks a field that two clients own.
func TestTwoDevices(t *testing.T) {
	x := newScript(t)
	x.expect(x.by("amy/phone", set("f", "1").own(grace)), `{"set":{"f":1},"own":{"f":["amy/phone"]},"by":"amy/phone"}`)
	x.expect(x.by("amy/tab", touch("f", 0).own(grace)), `{"until":{"f":0},"own":{"f":["amy/phone","amy/tab"]},"by":"amy/tab"}`)
	x.expect(x.end("amy/phone", 1), "")
	x.expect(x.end("amy/tab", 1), `{"away":{"f":16000}}`)
	x.expect(x.at(100).back("amy/phone", 2, "s1"), `{"back":["f"]}`)
	x.expect(x.disown("amy/phone", 2), `{"away":{"f":16100},"own":{"f":["amy/tab"]}}`)
	x.expect(x.at(200).ops(set("f", "2")), `{"set":{"f":2},"until":{"f":16100}}`)
	x.expect(x.disown("amy/tab", 1), `{"gone":{"f":"left"}}`)
}

// TestDisown checks Disown of an operation: the field stays, unless an owner that has left is the
// only one, and the field has no grace period.
func TestDisown(t *testing.T) {
	x := newScript(t)
	x.by("amy", set("f", "1").own(grace), set("g", "1").own(grace))
	x.expect(x.by("amy", touch("f", 0).disowned()), `{"until":{"f":0},"own":{"f":[]},"by":"amy"}`)
	x.expect(x.end("amy", 1), `{"away":{"g":16000}}`)
	x.expect(x.ops(touch("g", 0).disowned()), `{"back":["g"],"own":{"g":[]}}`)
	x.expect(x.at(20_000).shown(), `{"f":[1,1],"g":[1,1]}`)

	x = newScript(t)
	x.by("amy", set("f", "1").own(0), set("part", "1").of("f"))
	x.by("bob", touch("f", 0).own(0))
	x.expect(x.end("amy", 1), "")
	x.expect(x.by("bob", set("f", "2").disowned().ttl(time.Second), set("part", "2"), set("g", "1")),
		`{"gone":{"f":"left","part":"left"},"set":{"g":1},"by":"bob"}`)
}

// TestDisownStays checks that a field without an end of its grace outlives a subscription. An
// update of the same connection brings it back.
func TestDisownStays(t *testing.T) {
	x := newScript(t)
	x.by("amy", set("f", "1").own(GraceNever), set("g", "1").own(grace))
	x.expect(x.disown("amy", 1), `{"gone":{"g":"left"},"away":{"f":0}}`)
	x.expect(x.disown("amy", 1), "")
	x.expect(x.by("amy", touch("f", 0).own(GraceNever)), `{"back":["f"],"by":"amy"}`)
	x.by("bob", touch("f", 0).own(GraceNever))
	x.expect(x.disown("amy", 1), "")
	x.expect(x.disown("bob", 1), `{"away":{"f":0}}`)
	x.expect(x.back("bob", 2, "s1"), `{"back":["f"]}`)
}

// TestOwnedLimit checks how many fields a client may own: the update counts as a whole, and fields
// that it already owns do not count again.
func TestOwnedLimit(t *testing.T) {
	owned := func(ops ...Op) Update {
		u := from("amy", 1, ops...)
		u.Owned = 2
		return u
	}
	x := newScript(t)
	x.expect(x.apply(owned(set("a", "1").own(0), set("b", "1").own(0))), `{"set":{"a":1,"b":1},"own":{"a":["amy"],"b":["amy"]},"by":"amy"}`)
	x.expect(x.apply(owned(touch("a", 0).own(0), set("c", "1").own(0))), "full: field c: the client would own 3 fields, at most 2 are allowed")
	x.expect(x.apply(owned(set("c", "1").own(0), del("a"))), `{"del":["a"],"set":{"c":1},"own":{"c":["amy"]},"by":"amy"}`)
	x.expect(x.apply(owned(set("d", "1").own(0), touch("b", 0).disowned())),
		`{"set":{"d":1},"until":{"b":0},"own":{"b":[],"d":["amy"]},"by":"amy"}`)
	x.expect(x.apply(owned(set("e", "1"))), `{"set":{"e":1},"by":"amy"}`)
}

// TestReturnByUpdate checks that an update that owns a field counts as a return.
func TestReturnByUpdate(t *testing.T) {
	x := newScript(t)
	x.by("amy", set("f", "1").own(grace), set("g", "1").own(GraceNever))
	x.by("bob", set("h", "1").own(grace), touch("g", 0).own(GraceNever))
	x.end("amy", 1)
	x.end("bob", 1)
	x.expect(x.apply(from("amy", 2, set("f", "2").own(grace), touch("g", 0).disowned())),
		`{"set":{"f":2},"until":{"g":0},"back":["f"],"own":{"g":["bob"]},"by":"amy"}`)
	x.expect(x.shown(), `{"f":[5,2],"g":[1,1,0,"away"],"h":[2,1,16000,"away"]}`)
}

// TestWritesOfOthers checks that writes of others keep owners and grace, and that a deletion ends
// the ownership.
func TestWritesOfOthers(t *testing.T) {
	x := newScript(t)
	x.by("amy", set("f", "1").own(grace), add("n", 1, 0, 9).own(grace).ttl(time.Minute))
	x.end("amy", 1)
	x.expect(x.ops(set("f", "2"), add("n", 1, 0, 9)), `{"set":{"f":2,"n":2},"until":{"f":16000,"n":16000}}`)
	x.expect(x.ops(del("f")), `{"del":["f"]}`)
	x.expect(x.back("amy", 2, "s1"), `{"until":{"n":61000},"back":["n"]}`)
}

// TestFences checks that calls of old connections change nothing.
func TestFences(t *testing.T) {
	const stale = "unavailable: the client is connected elsewhere, or its connection has ended; try again later"
	own := func(generation int64, server string) Update {
		u := from("amy", generation, touch("f", 0).own(GraceNever))
		u.Server = server
		return u
	}
	const accepted = `{"until":{"f":0},"by":"amy"}`
	for _, test := range []struct {
		name  string
		steps func(x *script)
	}{
		{"a lower generation", func(x *script) {
			x.back("amy", 3, "s2")
			x.expect(x.apply(own(2, "s1")), stale)
			x.expect(x.end("amy", 2), "")
			x.expect(x.disown("amy", 2), "")
			x.expect(x.back("amy", 2, "s1"), "stale")
			x.expect(x.apply(own(3, "s2")), accepted)
		}},
		{"a generation that has ended", func(x *script) {
			x.end("amy", 2)
			x.expect(x.apply(own(2, "s1")), stale)
			x.expect(x.apply(own(2, "s2")), stale)
			x.expect(x.back("amy", 2, "s1"), "stale")
			x.expect(x.back("amy", 2, "s2"), "stale")
			x.expect(x.back("amy", 3, "s2"), `{"back":["f"]}`)
		}},
		{"a server that was taken for dead", func(x *script) {
			x.endServer("s1")
			x.expect(x.apply(own(2, "s1")), stale)
			x.expect(x.back("amy", 2, "s1"), "stale")
			x.expect(x.back("amy", 2, "s2"), `{"back":["f"]}`)
			x.expect(x.endServer("s1"), "")
			x.expect(x.apply(own(2, "s2")), accepted)
		}},
		{"a dead server, and then the end of the connection", func(x *script) {
			x.endServer("s1")
			x.expect(x.end("amy", 2), "")
			x.expect(x.back("amy", 2, "s2"), "stale")
		}},
		{"after the client has unsubscribed", func(x *script) {
			x.by("bob", touch("f", 0).own(GraceNever))
			x.expect(x.disown("amy", 2), "")
			x.expect(x.apply(own(1, "s1")), stale)
			x.expect(x.apply(own(2, "s1")), accepted)
		}},
		{"a fence is forgotten after an hour", func(x *script) {
			x.ops(touch("f", 0).disowned())
			x.end("amy", 2)
			x.at(FenceMS).sweep()
			x.expect(x.apply(own(2, "s1")), stale)
			x.at(FenceMS + 1).sweep()
			x.expect(x.apply(own(2, "s1")), `{"until":{"f":0},"own":{"f":["amy"]},"by":"amy"}`)
		}},
		{"a client that owns nothing", func(x *script) {
			x.expect(x.back("cat", 5, "s1"), "")
			x.expect(x.disown("cat", 5), "")
			x.expect(x.apply(from("cat", 1, touch("f", 0))), `{"until":{"f":0},"by":"cat"}`)
			x.expect(x.end("cat", 1), "")
			x.expect(x.apply(from("cat", 1, touch("f", 0))), stale)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newScript(t)
			x.apply(from("amy", 2, set("f", "1").own(GraceNever)))
			test.steps(x)
		})
	}
}

// TestForgottenState checks that a state without fields is empty once its fences are forgotten.
func TestForgottenState(t *testing.T) {
	x := newScript(t)
	x.by("amy", set("f", "1").own(0))
	x.expect(x.end("amy", 1), `{"gone":{"f":"left"}}`)
	x.at(FenceMS).sweep()
	if x.s.IsEmpty() {
		t.Error("the fence is forgotten too early")
	}
	if x.at(FenceMS + 1).sweep(); !x.s.IsEmpty() {
		t.Error("the fence is not forgotten after an hour")
	}
}
