package room_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/client"
	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit/room"
)

// device connects a device of a user to broker i. ended is set when the broker has ended it for
// good.
func (w *world) device(i int, user, name string) (c *client.Client, ended *atomic.Bool) {
	ended = new(atomic.Bool)
	return w.At(i).Connect(w.T, user, func(o *client.Options) {
		o.Client = name
		o.OnState = func(s client.State) {
			if s.Final {
				ended.Store(true)
			}
		}
	}), ended
}

// disconnect ends the connections of a user.
func (w *world) disconnect(user string) {
	w.Helper()
	if err := w.hosts[0].Disconnect(w.Context(), user); err != nil {
		w.Fatal(err)
	}
}

// TestDevices checks that the devices of a user share one number, which is away after the last one
// has gone, and that leaving ends it for all.
func TestDevices(t *testing.T) {
	each(t, 2, func(w *world) {
		phone, _ := w.device(0, "amy", "phone")
		tablet, _ := w.device(1, "amy", "tablet")
		arena := w.create(clientroom.New(phone), clientroom.CreateOptions{ID: "arena", Mode: "battle"})
		w.join(clientroom.New(tablet), "arena", 1)
		w.wantMembers("arena", "owner 1 1=amy")
		if err := arena.Leave(w.Context()); err != nil {
			w.Fatal(err)
		}
		await.True(w.T, "the subscriptions of both devices end", func() bool {
			_, a := phone.Fields(arena.Channel)
			_, b := tablet.Fields(arena.Channel)
			return !a && !b
		})
		w.wantMembers("arena", "owner 0")
		w.join(clientroom.New(tablet), "arena", 2)
		w.join(clientroom.New(phone), "arena", 2)
		w.disconnect("amy")
		await.True(w.T, "amy is away", func() bool { return w.members("arena") == "owner 2 2=amy*" })
		again, _ := w.device(1, "amy", "phone")
		w.join(clientroom.New(again), "arena", 2)
		w.wantMembers("arena", "owner 2 2=amy")
	})
}

// TestDeviceOfMember checks that a device must join a private room before it subscribes, and that
// its membership then lasts without the other device.
func TestDeviceOfMember(t *testing.T) {
	each(t, 2, func(w *world) {
		ctx := w.Context()
		phone, _ := w.device(0, "amy", "phone")
		tablet, _ := w.device(1, "amy", "tablet")
		den := w.create(clientroom.New(phone), clientroom.CreateOptions{Mode: "racing", Visibility: "private"})
		_, err := tablet.Subscribe(ctx, den.Channel, client.SubscribeOptions{State: true})
		w.refused(err, wire.Forbidden)
		w.join(clientroom.New(tablet), den.ID, 1)
		if err := phone.Unsubscribe(ctx, den.Channel); err != nil {
			w.Fatal(err)
		}
		w.wantMembers(den.ID, "owner 1 1=amy")
		if err := tablet.Unsubscribe(ctx, den.Channel); err != nil {
			w.Fatal(err)
		}
		w.wantMembers(den.ID, "owner 0")
		_, err = tablet.Subscribe(ctx, den.Channel, client.SubscribeOptions{State: true})
		w.refused(err, wire.Forbidden)
	})
}

// TestLateSocketEnd checks that the end of an old connection on one broker does not evict the new
// one on another broker.
func TestLateSocketEnd(t *testing.T) {
	each(t, 2, func(w *world) {
		first, ended := w.device(0, "amy", "phone")
		w.create(clientroom.New(first), clientroom.CreateOptions{ID: "arena", Mode: "battle"})
		second, _ := w.device(1, "amy", "phone")
		mine := w.join(clientroom.New(second), "arena", 1)
		await.True(w.T, "the first connection has ended", ended.Load)
		if err := mine.Set(w.Context(), "health", 85); err != nil {
			w.Fatal(err)
		}
		w.join(clientroom.New(second), "arena", 1)
		w.wantMembers("arena", "owner 1 1=amy")
		w.fold("arena", func(_ *state.Map, e *state.Entry) {
			if len(e.Gone)+len(e.Del) > 0 {
				w.Errorf("the log has %s", e.Encode())
			}
		})
	})
}

// TestGrace checks that a player that returns within the grace keeps the number and its fields, and
// that the place is free after it.
func TestGrace(t *testing.T) {
	each(t, 2, func(w *world) {
		ctx := w.Context()
		phone, _ := w.device(0, "amy", "phone")
		bob := w.connect(1, "bob")
		arena := w.create(clientroom.New(phone), clientroom.CreateOptions{ID: "arena", Mode: "battle"})
		if err := arena.Set(ctx, "health", 85); err != nil {
			w.Fatal(err)
		}
		w.join(bob, "arena", 2)
		w.disconnect("amy")
		await.True(w.T, "amy is away, and the owner", func() bool { return w.members("arena") == "owner 1 1=amy* 2=bob" })
		again, _ := w.device(1, "amy", "phone")
		back := w.join(clientroom.New(again), "arena", 1)
		await.True(w.T, "amy has the field", func() bool { _, found := back.Field("p/1/health"); return found })

		// Racing has a grace of a millisecond.
		bobs := w.create(bob, clientroom.CreateOptions{ID: "racing:1", Mode: "racing"})
		if err := w.join(clientroom.New(again), "racing:1", 2).Set(ctx, "health", 85); err != nil {
			w.Fatal(err)
		}
		w.disconnect("amy")
		await.True(w.T, "amy's place is free", func() bool { return w.members("racing:1") == "owner 1 1=bob" })
		await.True(w.T, "bob sees that amy's fields are gone", func() bool {
			_, found := bobs.Field("p/2/health")
			return !found && len(bobs.Members()) == 1
		})
		last, _ := w.device(0, "amy", "phone")
		w.join(clientroom.New(last), "racing:1", 3)
	})
}

// TestJoinForClient checks that the backend joins for a client, which then owns the membership.
func TestJoinForClient(t *testing.T) {
	each(t, 2, func(w *world) {
		den := w.http(200, "POST", "/v1/rooms", object{"mode": "battle", "visibility": "private", "owner": "amy"})
		id := den["id"].(string)
		path := "/v1/rooms/" + id + "/join"
		w.http(404, "POST", path, object{"user": "amy", "client": "phone"})
		phone, _ := w.device(0, "amy", "phone")
		await.True(w.T, "amy is connected", func() bool { c, _ := phone.Identity(); return c == "amy/phone" })
		if got := w.http(200, "POST", path, object{"user": "amy", "client": "phone", "nickname": "Amy"}); got["n"] != 1.0 {
			w.Errorf("joined as %v", got)
		}
		if got := w.http(200, "POST", path, object{"user": "amy", "client": "phone"}); got["n"] != 1.0 || got["already"] != true {
			w.Errorf("joined again as %v", got)
		}
		w.wantMembers(id, "owner 1 1=amy")
		w.disconnect("amy")
		await.True(w.T, "amy is away", func() bool { return w.members(id) == "owner 1 1=amy*" })
		got := w.http(409, "POST", "/v1/rooms/"+id+"/reserve", object{"users": strings.Fields("bob cat dan eve")})
		if _, found := got["error"]; !found {
			w.Errorf("refused with %v", got)
		}
	})
}

// TestReservationEnds checks that the place is free after the time.
func TestReservationEnds(t *testing.T) {
	each(t, 1, func(w *world) {
		if !w.Memory {
			w.Skip("the clock of Redis cannot be set")
		}
		create := room.CreateRequest{ID: "arena", Mode: "battle"}
		if _, err := w.rooms[0].Create(w.Context(), room.Backend, create); err != nil {
			w.Fatal(err)
		}
		reserve := room.ReserveRequest{Users: []string{"amy", "bob"}, TTL: 30}
		done, err := w.rooms[0].Reserve(w.Context(), "arena", reserve)
		if err != nil || done.Numbers["amy"] != 1 || done.Numbers["bob"] != 2 {
			w.Fatalf("reserved %v, %v", done, err)
		}
		w.Advance(29 * time.Second)
		reserve.Users = []string{"bob"}
		if _, err := w.rooms[0].Reserve(w.Context(), "arena", reserve); err != nil {
			w.Fatal(err)
		}
		w.Advance(time.Second)
		w.wantMembers("arena", "owner 0 2=bob?")
		_, err = w.rooms[0].Leave(w.Context(), room.Backend, "arena", "amy")
		w.refused(err, wire.NotFound)
	})
}

// TestBack checks that a device of a private room that connects again is back by its subscription.
func TestBack(t *testing.T) {
	each(t, 2, func(w *world) {
		phone, ended := w.device(0, "amy", "phone")
		den := w.create(clientroom.New(phone), clientroom.CreateOptions{Mode: "battle", Visibility: "private"})
		w.disconnect("amy")
		await.True(w.T, "amy is away", func() bool { return ended.Load() && w.members(den.ID) == "owner 1 1=amy*" })
		again, _ := w.device(1, "amy", "phone")
		if _, err := again.Subscribe(w.Context(), den.Channel, client.SubscribeOptions{State: true}); err != nil {
			w.Fatal(err)
		}
		w.wantMembers(den.ID, "owner 1 1=amy")
		if _, err := again.Update(w.Context(), den.Channel, client.Set("p/1/health", 85)); err != nil {
			w.Fatal(err)
		}
	})
}
