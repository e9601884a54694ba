package room_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"switchboard/broker/extension"
	clientroom "switchboard/client/room"
	"switchboard/events"
	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
)

// TestCheck changes cards and lobbies by hand. The check finds each difference, and a round
// corrects it.
func TestCheck(t *testing.T) {
	w := newLoadWorld(t)
	check := room.Check(kit.CheckOptions{Index: w.index, States: w.states})
	find := func() (problems []string) {
		found, err := check.Find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			problems = append(problems, f.Subject+" "+f.Problem)
		}
		slices.Sort(problems)
		return problems
	}
	w.create(w.connect(1, "amy"), clientroom.CreateOptions{ID: "a", Mode: "battle", Region: "eu"})
	w.make(room.CreateRequest{ID: "b", Mode: "battle"})
	w.settle()
	if got := find(); got != nil {
		t.Fatalf("found %q", got)
	}
	cards, err := w.index.Get(t.Context(), "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	put := func(c index.Card) {
		if err := w.index.Put(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	lobby := func(name string, op state.Op) {
		op.Field = "room/" + name
		u := &state.Update{Writer: state.BackendHolder, Ops: []state.Op{op}}
		if _, err := w.hosts[1].Change(t.Context(), "lobby:battle", u, extension.ChangeOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	user := func(change func(map[string]int64)) index.Card {
		c := cards[0]
		c.Version++
		c.Lists = map[string]int64{}
		for list, score := range cards[0].Lists {
			c.Lists[list] = score
		}
		change(c.Lists)
		return c
	}
	for want, spoil := range map[string]func(){
		"room:a its card differs from the room": func() {
			c := cards[0]
			c.Version, c.Data = c.Version+1, json.RawMessage(strings.Replace(string(c.Data), `"members":1`, `"members":2`, 1))
			put(c)
		},
		"room:a the list user/amy is not as the room is": func() { put(user(func(l map[string]int64) { delete(l, "user/amy") })) },
		"room:a the list user/bob is not as the room is": func() { put(user(func(l map[string]int64) { l["user/bob"] = 1 })) },
		"room:b it has no card":                          func() { put(index.Card{ID: "b", Version: cards[1].Version + 1}) },
		"room:x it has a card, but there is no room": func() {
			put(index.Card{ID: "x", Version: 1, Lists: map[string]int64{"created": 1}, Data: []byte(`{"id":"x"}`)})
		},
		"lobby:battle it does not show room a": func() { lobby("a", state.Op{Kind: state.Delete}) },
		"lobby:battle it shows room x, which is not one of the newest that can be joined": func() {
			lobby("x", state.Op{Kind: state.Set, Value: []byte("{}")})
		},
		"lobby:battle it shows room a as it is not": func() { lobby("a", state.Op{Kind: state.Set, Value: []byte(`{"id":"a","at":1}`)}) },
	} {
		spoil()
		if got := find(); !slices.Contains(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(want, "room:"), " ")
		if err := w.index.Schedule(t.Context(), 1, strings.Replace(id, "lobby:", "lobby/", 1)); err != nil {
			t.Fatal(err)
		}
		await.True(t, "the rounds correct: "+want, func() bool { w.rounds(); return find() == nil })
		if cards, err = w.index.Get(t.Context(), "a", "b"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestore empties the index, as a failover of the store might. A round of the janitor makes the
// brokers compute it again.
func TestRestore(t *testing.T) {
	t.Parallel() // it mostly waits
	w := newLoadWorld(t)
	w.create(w.connect(1, "amy"), clientroom.CreateOptions{ID: "a", Mode: "battle", Region: "eu"})
	w.make(room.CreateRequest{ID: "b", Mode: "battle"})
	w.settle()
	c := kittest.Redis.Client(t)
	keys, err := c.Keys(t.Context(), w.prefix+"ix_*").Result()
	if err != nil || len(keys) < 3 {
		t.Fatalf("the index has the keys %q, %v", keys, err)
	}
	if err := c.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	o := kit.CheckOptions{Index: w.index, States: w.states}
	if n, err := room.Restore(o).Do(t.Context()); n < 2 || err != nil { // a channel may come twice
		t.Errorf("restored %d rooms, %v", n, err)
	}
	await.True(t, "the brokers have computed the cards", func() bool {
		w.rounds()
		found, err := room.Check(o).Find(t.Context())
		return err == nil && len(found) == 0
	})
	w.wantList("", "a b")
	if n, err := room.Restore(o).Do(t.Context()); n != 0 || err != nil {
		t.Errorf("restored %d rooms, %v, though nothing is lost", n, err)
	}
	for _, id := range []string{"a", "b"} {
		if err := w.rooms[0].Delete(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
	}
	w.settle()
	listed := false
	for channel, err := range w.states.StateChannels(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		listed = listed || channel == room.Channel("a")
	}
	if n, err := room.Restore(o).Do(t.Context()); n != 0 || err != nil || !listed {
		t.Errorf("restored %d rooms that have ended, %v; their channels are listed: %t", n, err, listed)
	}
}

var _ room.Events = (*events.Recorder)(nil)
