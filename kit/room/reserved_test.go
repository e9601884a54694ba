package room_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"switchboard/broker/extension"
	"switchboard/client"
	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit/room"
)

// TestReservedIsNoMember checks that a user with a reserved place may do no more in a room than any
// other user, until it joins: neither publish, nor write fields, nor appear in the presence, nor
// read a room of members.
func TestReservedIsNoMember(t *testing.T) {
	each(t, 2, func(w *world) {
		ctx := w.Context()
		w.make(room.CreateRequest{ID: "open", Mode: "battle"})
		w.make(room.CreateRequest{ID: "den", Mode: "battle", Visibility: room.Private})
		w.make(room.CreateRequest{ID: "club", Mode: "closed"})
		for _, id := range []string{"open", "den", "club"} {
			got, err := w.rooms[0].Reserve(ctx, id, room.ReserveRequest{Users: []string{"bob"}})
			if err != nil || got.Numbers["bob"] != 1 {
				w.Fatal(got, err)
			}
		}
		c := w.At(1).Connect(w.T, "bob", nil)
		bob := clientroom.New(c)
		for _, id := range []string{"den", "club"} {
			_, err := c.Subscribe(ctx, room.Channel(id), client.SubscribeOptions{State: true})
			w.refused(err, wire.Forbidden)
			_, err = bob.Get(ctx, id)
			w.refused(err, wire.Forbidden)
		}
		eve := dial(w.T, w.At(0), "eve")
		eve.send(`{"type":"subscribe","ref":1,"channel":"room:open","presence":true,"state":true}`)
		eve.receives(`"type":"subscribed"`)
		if _, err := c.Subscribe(ctx, room.Channel("open"), client.SubscribeOptions{State: true}); err != nil {
			w.Fatal(err)
		}
		change := func(field string) error {
			_, err := c.Update(ctx, room.Channel("open"), client.Set(field, 1))
			return err
		}
		_, err := c.Publish(ctx, room.Channel("open"), "hello")
		w.refused(err, wire.Forbidden)
		for _, field := range []string{"g/round", "p/1/position"} {
			w.refused(change(field), wire.Forbidden)
		}
		if got := w.http(200, "GET", "/v1/channels/room:open/presence", nil)["count"]; got != 0.0 {
			w.Errorf("%v members are present", got)
		}
		w.wantMembers("open", "owner 0 1=bob?")

		w.join(bob, "open", 1)
		w.wantMembers("open", "owner 1 1=bob")
		if _, err := c.Publish(ctx, room.Channel("open"), "hello"); err != nil {
			w.Error(err)
		}
		for _, field := range []string{"g/round", "p/1/position"} {
			if err := change(field); err != nil {
				w.Error(field, err)
			}
		}
		eve.receives(`"type":"join","client":"1","channel":"room:open"}`)
		eve.hides("bob")
		for _, id := range []string{"den", "club"} {
			w.join(bob, id, 1)
			if _, err := c.Publish(ctx, room.Channel(id), "hello"); err != nil {
				w.Error(id, err)
			}
		}
		if err := w.join(bob, "open", 1).Leave(ctx); err != nil {
			w.Error(err)
		}
		w.wantMembers("open", "owner 0")
	})
}

// TestReservationOfEarlierRelease checks that a reservation as an earlier release has stored it,
// with the number in $$user/{user}, becomes a membership like others.
func TestReservationOfEarlierRelease(t *testing.T) {
	each(t, 2, func(w *world) {
		w.make(room.CreateRequest{ID: "open", Mode: "battle"})
		if _, err := w.rooms[0].Reserve(w.Context(), "open", room.ReserveRequest{Users: []string{"bob"}}); err != nil {
			w.Fatal(err)
		}
		w.reserveAsBefore("open", "bob", 1)
		if again, err := w.rooms[1%len(w.rooms)].Reserve(w.Context(), "open", room.ReserveRequest{Users: []string{"bob", "cat"}}); err != nil || again.Numbers["bob"] != 1 {
			w.Error(again, err)
		}
		w.join(w.connect(1, "bob"), "open", 1)
		w.wantMembers("open", "owner 1 1=bob 2=cat?")
		for _, name := range w.fieldsOf("open") {
			if strings.HasPrefix(name, "$$reserved/bob") {
				w.Errorf("the field %s is left", name)
			}
		}
	})
}

// TestKickedStaysOut checks that a player that was kicked may not join again for the time of the
// kick, nor be sent there by a quick join, unless the backend takes the player in.
func TestKickedStaysOut(t *testing.T) {
	eachListed(t, 2, func(w *world, _ *recorder) {
		ctx := w.Context()
		amy, bob, cat := w.connect(0, "amy"), w.connect(1, "bob"), w.connect(0, "cat")
		arena := w.create(amy, clientroom.CreateOptions{ID: "battle:1", Mode: "battle"})
		w.join(bob, "battle:1", 2)
		w.join(cat, "battle:1", 3)
		if err := arena.Kick(ctx, 2); err != nil {
			w.Fatal(err)
		}
		_, err := bob.Join(ctx, "battle:1", clientroom.JoinOptions{})
		w.refused(err, wire.Forbidden)
		if until := untilOf(err); until == 0 {
			w.Errorf("the error has no end: %v", err)
		}
		if quick, err := bob.Quick(ctx, clientroom.QuickOptions{Mode: "battle"}); err != nil || quick.ID == "battle:1" {
			w.Errorf("the quick join is %+v, %v", quick, err)
		}
		if err := arena.KickFor(ctx, 3, 0); err != nil { // cat may join again at once
			w.Fatal(err)
		}
		w.join(cat, "battle:1", 4)
		w.http(400, "POST", "/v1/rooms/battle:1/kick", object{"n": 4, "ttl": -1})
		w.http(400, "POST", "/v1/rooms/battle:1/kick", object{"n": 4, "ttl": 86401})
		w.http(200, "POST", "/v1/rooms/battle:1/kick", object{"n": 4, "ttl": 3600})
		_, err = cat.Join(ctx, "battle:1", clientroom.JoinOptions{})
		w.refused(err, wire.Forbidden)
		w.http(200, "POST", "/v1/rooms/battle:1/reserve", object{"users": []string{"cat"}})
		w.join(cat, "battle:1", 5)
		await.True(w.T, "bob is connected", func() bool {
			return w.At(0).Call(w.T, "POST", "/v1/rooms/battle:1/join", `{"user":"bob","client":"device"}`, nil) == 200
		})
		w.wantMembers("battle:1", "owner 1 1=amy 5=cat 6=bob")
	})
}

// TestKickedUntil checks that the time of a kick is on the store's clock, and ends.
func TestKickedUntil(t *testing.T) {
	each(t, 1, func(w *world) {
		if !w.Memory {
			return // the clock of Redis cannot be advanced
		}
		arena := w.create(w.connect(0, "amy"), clientroom.CreateOptions{ID: "a", Mode: "battle"})
		bob := w.connect(0, "bob")
		w.join(bob, "a", 2)
		if err := arena.Kick(w.Context(), 2); err != nil {
			w.Fatal(err)
		}
		_, err := bob.Join(w.Context(), "a", clientroom.JoinOptions{})
		w.refused(err, wire.Forbidden)
		w.Advance(room.KickedFor)
		w.join(bob, "a", 3)
	})
}

// untilOf returns the end of a kick that is in the data of an error.
func untilOf(err error) int64 {
	var data struct{ Until int64 }
	if d, ok := errors.AsType[*client.DetailedError](err); ok {
		_ = json.Unmarshal(d.Data, &data)
	}
	return data.Until
}

// fieldsOf returns the names of all fields of a room.
func (w *world) fieldsOf(id string) (names []string) {
	w.Helper()
	fields, err := w.hosts[0].ReadGroup(w.Context(), room.Channel(id), "")
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// reserveAsBefore makes a reservation what an earlier release has stored: the number is in
// $$user/{user}.
func (w *world) reserveAsBefore(id, user string, n int) {
	w.Helper()
	u := &state.Update{Writer: state.BackendHolder, Ops: []state.Op{
		{Field: "$$reserved/" + user, Kind: state.Delete},
		{Field: "$$user/" + user, Kind: state.Set, Value: []byte(`"` + strconv.Itoa(n) + `"`), Parent: "member/" + strconv.Itoa(n)},
	}}
	if _, err := w.hosts[0].Change(w.Context(), room.Channel(id), u, extension.ChangeOptions{}); err != nil {
		w.Fatal(err)
	}
}
