package queue

import (
	"fmt"
	"testing"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

func numbered(op state.Op) state.Op {
	op.Numbered = true
	return op
}

func heldBy(op state.Op, user string) state.Op {
	op.Holder = state.UserHolder(user)
	return op
}

// testStateCounter joins a room: each member gets a number, in one update.
func testStateCounter(t *testing.T, open opener) {
	f := open(t, Options{})
	change := func(key string, u state.Update) (Appended, error) {
		u.Writer = state.BackendHolder
		return f.AppendChannel(t.Context(), ChannelPush{Channel: room, Key: key, Update: &u})
	}
	join := func(key, user string) (Appended, error) {
		return change(key, state.Update{
			Counter: "$$next", If: []state.Condition{{Field: "$$user/" + user, Kind: state.IsAbsent}},
			Client: user + "/tab", Generation: 1, Server: "s1",
			Ops: []state.Op{
				heldBy(own(set("member/{n}", `{"name":"{n}"}`), time.Minute), user), part(numbered(set("$$user/"+user, "{n}")), "member/{n}"),
			},
		})
	}
	a := must(join("k", "amy"))(t)
	equal(t, "the number", fmt.Sprint(a.Numbers), "map[$$next:1]")
	wantEntry(t, "join", a, `~{"set":{"$$next":1,"$$user/amy":1,"member/1":{"name":"{n}"}},"own":{"member/1":["amy/tab"]},"by":"amy/tab"}`)
	again := must(join("k", "amy"))(t)
	equal(t, "a duplicate", fmt.Sprint(again.Duplicate, again.ID == a.ID, again.Numbers), "true true map[$$next:1]")
	wantRefusal(t, "a second join", second(join("", "amy")), wire.Conflict)
	b := must(join("", "bob"))(t)
	equal(t, "the second number", fmt.Sprint(b.Numbers), "map[$$next:2]")
	must(f.update(t, state.Op{Field: "member/1", Kind: state.Delete}))(t)
	f.wantState(t, "after a leave", map[string]string{"$$next": "2", "$$user/bob": "2", "member/2": `{"name":"{n}"}`})

	c := must(change("", state.Update{Counter: "$$next", Take: 3, Ops: []state.Op{
		set("member/{n}", "1"), set("member/{n2}", "2"), numbered(set("member/{n3}", `["{n}","{n2}",{n3},"{n4}"]`)), add("score/{n}", 2),
	}}))(t)
	equal(t, "three numbers", fmt.Sprint(c.Numbers), "map[$$next:5 score/3:2]")
	must(f.update(t, state.Op{Field: "$$user/bob", Kind: state.Delete}, state.Op{Field: "member/2", Kind: state.Delete}))(t)
	want := map[string]string{"$$next": "5", "member/3": "1", "member/4": "2", "member/5": `["3","4",5,"{n4}"]`, "score/3": "2"}
	f.wantState(t, "after a reservation", want)

	full := set("member/{n}", "1")
	full.GroupMax = 3
	refusal := wantRefusal(t, "a full room", second(change("", state.Update{Counter: "$$next", Ops: []state.Op{full}})), wire.Full)
	equal(t, "group", fmt.Sprintln(refusal.Group, refusal.Max, len(refusal.Fields)), "member/ 3 3\n")
	full.GroupMax = 5
	must(f.update(t, set("$max/member/", "3")))(t)
	refusal = wantRefusal(t, "full by $max", second(change("", state.Update{Counter: "$$next", Ops: []state.Op{full}})), wire.Full)
	equal(t, "max", refusal.Max, 3)
	must(f.update(t, state.Op{Field: "$max/member/", Kind: state.Delete}))(t)
	refusal = wantRefusal(t, "out of bounds", second(change("", state.Update{Counter: "$$next", Ops: []state.Op{add("a/{n}", 11)}})), wire.OutOfRange)
	equal(t, "message", refusal.Error(), "limit: field a/6: the result 11 is out of bounds")
	wantRefusal(t, "not a number", second(change("", state.Update{Counter: "member/5"})), wire.BadRequest)
	must(f.update(t, set("last", "9007199254740990")))(t)
	refusal = wantRefusal(t, "the largest number", second(change("", state.Update{Counter: "last", Take: 64})), wire.OutOfRange)
	equal(t, "message", refusal.Error(), "limit: field last: the result 9007199254741054 is out of bounds")
	want["last"] = "9007199254740990"
	f.wantState(t, "refusals take no number", want)
	testStateManyNumbers(t, f)
}

// testStateManyNumbers takes as many numbers as possible.
func testStateManyNumbers(t *testing.T, f fixture) {
	u := state.Update{Counter: "count", Take: state.MaxTake}
	want := map[string]string{"count": "64"}
	for i := range state.MaxTake {
		name := fmt.Sprintf("unit/{n%d}", i+1)
		if i == 0 {
			name = "unit/{n}"
		}
		u.Ops = append(u.Ops, set(name, "1"))
		want[fmt.Sprint("unit/", i+1)] = "1"
	}
	a := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "hold:1", Update: &u}))(t)
	equal(t, "numbers", fmt.Sprint(a.Numbers), "map[count:64]")
	page := f.ReadStates(t.Context(), []StateRead{{Channel: "hold:1"}})[0].Value
	for _, field := range page.Fields {
		equal(t, field.Name, string(field.Value), want[field.Name])
	}
	equal(t, "fields", len(page.Fields), len(want))
}

// testStateHolders checks that the operations of one update may have several holders, and that an
// update of the backend makes a client an owner.
func testStateHolders(t *testing.T, open opener) {
	f := open(t, Options{})
	change := func(ops ...state.Op) (Appended, error) {
		return f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: &state.Update{
			Ops: ops, Writer: state.BackendHolder, Client: amy.Client, Generation: amy.Generation, Server: amy.Server,
		}})
	}
	must(change(set("$room", "1"), heldBy(own(set("member/1", "1"), 0), "amy"), part(set("$$user/amy", "1"), "member/1"), heldBy(add("n", 1), "bob")))(t)
	page := f.wantState(t, "joined", map[string]string{"$room": "1", "member/1": "1", "$$user/amy": "1", "n": "1"})
	holders := ""
	for _, field := range page.Fields {
		holders += fmt.Sprintln(field.Name, field.Holder, field.Owners)
	}
	equal(t, "holders", holders, "$$user/amy b []\n$room b []\nmember/1 u:amy ["+amy.Client+"]\nn u:bob []\n")

	claim := func(op state.Op) state.Op { op.Claim = true; return op }
	held := func(op state.Op) state.Op { op.HeldParent = true; return op }
	must(f.updateBy(t, amy, held(part(set("p/1/x", "1"), "member/1"))))(t)
	wantRefusal(t, "claimed", second(change(claim(heldBy(set("n", "2"), "amy")))), wire.Conflict)
	must(change(claim(heldBy(set("n", "2"), "bob"))))(t)
	wantRefusal(t, "part of another user", second(change(held(part(heldBy(set("p/1/y", "1"), "bob"), "member/1")))), wire.Forbidden)
	must(change(held(part(heldBy(set("p/1/y", "1"), "amy"), "member/1"))))(t)
	remove := heldBy(state.Op{Field: "p/1/y", Kind: state.Delete, HeldParent: true}, "bob")
	wantRefusal(t, "removed by another user", second(change(remove)), wire.Forbidden)
	must(change(remove, heldBy(set("member/1", "2"), "bob")))(t)
	wantEntry(t, "the end of the owner", must(f.stepState(t, OwnerEnded, amy))(t), `~{"gone":{"$$user/amy":"left","member/1":"left","p/1/x":"left"}}`)
	f.wantState(t, "after the end", map[string]string{"$room": "1", "n": "2"})
}
