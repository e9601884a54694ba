package room_test

import (
	"errors"
	"strings"
	"testing"

	"switchboard/client"
	clientroom "switchboard/client/room"
	"switchboard/internal/wire"
	"switchboard/kit/room"
)

// TestOwner checks who the owner is: the named user while it is a member, else the lowest number.
func TestOwner(t *testing.T) {
	each(t, 2, func(w *world) {
		ctx := w.Context()
		w.http(200, "POST", "/v1/rooms", object{"id": "arena", "mode": "battle", "owner": "cat"})
		amy, bob, cat := w.connect(0, "amy"), w.connect(1, "bob"), w.connect(0, "cat")
		w.http(200, "POST", "/v1/rooms/arena/reserve", object{"users": []string{"cat"}})
		w.wantMembers("arena", "owner 0 1=cat?")
		a := w.join(amy, "arena", 2)
		b := w.join(bob, "arena", 3)
		w.wantMembers("arena", "owner 2 1=cat? 2=amy 3=bob")
		c := w.join(cat, "arena", 1)
		w.wantMembers("arena", "owner 1 1=cat 2=amy 3=bob")
		w.refused(a.Kick(ctx, 3), wire.Forbidden)
		w.refused(a.Lock(ctx, true), wire.Forbidden)
		w.refused(a.Start(ctx), wire.Forbidden)
		three, nine := 3, 9
		_, err := c.Patch(ctx, clientroom.Patch{Owner: &nine})
		w.refused(err, wire.NotFound)
		if info, err := c.Patch(ctx, clientroom.Patch{Owner: &three}); err != nil || info.Owner != 3 {
			w.Fatalf("%+v, %v", info, err)
		}
		w.wantMembers("arena", "owner 3 1=cat 2=amy 3=bob")
		if err := b.Leave(ctx); err != nil {
			w.Fatal(err)
		}
		w.wantMembers("arena", "owner 1 1=cat 2=amy")
		w.join(bob, "arena", 4)
		w.wantMembers("arena", "owner 4 1=cat 2=amy 4=bob")
	})
}

// TestOwnerChanges checks that the store refuses what an owner does after another member became the
// owner.
func TestOwnerChanges(t *testing.T) {
	each(t, 1, func(w *world) {
		if !w.Memory {
			w.Skip("only the store in memory is interrupted")
		}
		ctx := w.Context()
		amy, bob := w.connect(0, "amy"), w.connect(0, "bob")
		a := w.create(amy, clientroom.CreateOptions{ID: "arena", Mode: "battle"})
		b := w.join(bob, "arena", 2)
		two, one := 2, 1
		for name, act := range map[string]func() error{
			"kick": func() error { return a.Kick(ctx, 2) },
			"lock": func() error { return a.Lock(ctx, true) },
			"name": func() error { name := "x"; _, err := a.Patch(ctx, clientroom.Patch{Name: &name}); return err },
		} {
			w.Before(func() {
				if _, err := w.rooms[0].Patch(ctx, room.Backend, room.PatchRequest{Room: "arena", Owner: &two}); err != nil {
					w.Error(err)
				}
			})
			if err := act(); codeOf(err) != string(wire.Forbidden) {
				w.Errorf("%s: %v", name, err)
			}
			if _, err := b.Patch(ctx, clientroom.Patch{Owner: &one}); err != nil {
				w.Error(err)
			}
		}
		// The room is locked between the read and the write of a join.
		w.Before(func() {
			if _, err := w.rooms[0].Lock(ctx, room.Backend, "arena", true); err != nil {
				w.Error(err)
			}
		})
		_, err := w.connect(0, "cat").Join(ctx, "arena", clientroom.JoinOptions{})
		w.refused(err, wire.Locked)
	})
}

// TestReservedOwner checks that the store refuses what an owner does after a user has taken a
// reserved place with a lower number, and that such a place alone makes no owner.
func TestReservedOwner(t *testing.T) {
	each(t, 1, func(w *world) {
		if !w.Memory {
			w.Skip("only the store in memory is interrupted")
		}
		ctx := w.Context()
		if _, err := w.rooms[0].Create(ctx, room.Backend, room.CreateRequest{ID: "arena", Mode: "battle"}); err != nil {
			w.Fatal(err)
		}
		if _, err := w.rooms[0].Reserve(ctx, "arena", room.ReserveRequest{Users: []string{"bob"}}); err != nil {
			w.Fatal(err)
		}
		bob := w.connect(0, "bob")
		a := w.join(w.connect(0, "amy"), "arena", 2)
		if err := a.Lock(ctx, true); err != nil {
			w.Fatal(err)
		}
		w.Before(func() { w.join(bob, "arena", 1) })
		if err := a.Lock(ctx, false); codeOf(err) != string(wire.Forbidden) {
			w.Errorf("unlocked: %v", err)
		}
		w.wantMembers("arena", "owner 1 1=bob 2=amy")
	})
}

// TestVersions checks patches and deletions with a version.
func TestVersions(t *testing.T) {
	each(t, 2, func(w *world) {
		ctx := w.Context()
		amy := w.connect(0, "amy")
		arena := w.create(amy, clientroom.CreateOptions{ID: "arena", Mode: "battle", Name: "old"})
		before, err := amy.Get(ctx, "arena")
		if err != nil {
			w.Fatal(err)
		}
		name := "new"
		info, err := arena.Patch(ctx, clientroom.Patch{Version: before.Version, Name: &name})
		if err != nil || info.Room.Name != "new" || info.Version <= before.Version {
			w.Fatalf("%+v, %v", info, err)
		}
		_, err = arena.Patch(ctx, clientroom.Patch{Version: before.Version, Name: &name})
		w.refused(err, wire.Conflict)
		if d, ok := errors.AsType[*client.DetailedError](err); !ok || !strings.Contains(string(d.Data), `"name":"new"`) {
			w.Errorf("the conflict is %v", err)
		}
		if got, err := amy.Get(ctx, "arena"); err != nil || got.Version != info.Version {
			w.Errorf("got %+v, %v", got, err)
		}
		old := `"` + itoa(before.Version) + `"`
		w.http(409, "PATCH", "/v1/rooms/arena", object{"name": "x"}, "If-Match", old)
		w.http(409, "DELETE", "/v1/rooms/arena", nil, "If-Match", old)
		w.http(400, "DELETE", "/v1/rooms/arena", nil, "If-Match", "x")
		w.http(400, "DELETE", "/v1/rooms/arena", nil, "If-None-Match", "*")
		w.http(409, "PATCH", "/v1/rooms/arena", object{"version": before.Version}, "If-Match", "*")
		w.http(200, "PATCH", "/v1/rooms/arena", object{}, "If-Match", "*")
		w.http(400, "PATCH", "/v1/rooms/arena", object{"mode": "racing"})
		w.http(200, "DELETE", "/v1/rooms/arena", nil, "If-Match", `"`+itoa(info.Version)+`"`)
		w.http(404, "GET", "/v1/rooms/arena", nil)
		w.http(200, "DELETE", "/v1/rooms/arena", nil)
		w.http(409, "DELETE", "/v1/rooms/arena", nil, "If-Match", "*")
	})
}

// TestRoomAgain checks that a room has nothing of an earlier one with the same id.
func TestRoomAgain(t *testing.T) {
	each(t, 2, func(w *world) {
		ctx := w.Context()
		c := w.At(0).Connect(w.T, "amy", nil)
		amy := clientroom.New(c)
		arena := w.create(amy, clientroom.CreateOptions{ID: "arena", Mode: "battle"})
		if _, err := c.Update(ctx, arena.Channel, client.Set("g/round", 1)); err != nil {
			w.Fatal(err)
		}
		if err := w.rooms[0].Delete(ctx, "arena", 0); err != nil {
			w.Fatal(err)
		}
		again := w.create(w.connect(1, "bob"), clientroom.CreateOptions{ID: "arena", Mode: "battle"})
		if again.N != 1 {
			w.Errorf("bob has the number %d", again.N)
		}
		if fields, err := w.hosts[0].ReadGroup(ctx, arena.Channel, "g/"); err != nil || len(fields) > 0 {
			w.Errorf("the new room has %v, %v", fields, err)
		}
		w.wantMembers("arena", "owner 1 1=bob")
	})
}

// TestCreate checks what Create refuses, and its key.
func TestCreate(t *testing.T) {
	each(t, 1, func(w *world) {
		ctx := w.Context()
		for want, q := range map[string]room.CreateRequest{
			"no mode":                   {Mode: "chess"},
			"neither public":            {Mode: "battle", Visibility: "secret"},
			"between 1 and 4":           {Mode: "battle", Capacity: 5},
			"at most 128 bytes":         {Mode: "battle", Name: strings.Repeat("x", 129)},
			"with racing and a colon":   {Mode: "racing", ID: "r1"},
			"with battle and a colon":   {Mode: "battle", ID: "racing:1"},
			"neither * nor /":           {Mode: "battle", ID: "a/b"},
			"made from keys":            {Mode: "battle", ID: "battle:~x"},
			"without an id":             {Mode: "battle", ID: "x", Key: "y"},
			"spaces, braces":            {Mode: "battle", Region: "us west"},
			"the character '\\n' is":    {Mode: "battle", Name: "a\nb"},
			"its escaped form has more": {Mode: "battle", Owner: strings.Repeat("é", 60)},
		} {
			_, err := w.rooms[0].Create(ctx, room.Backend, q)
			if err == nil || codeOf(err) != string(wire.BadRequest) || !strings.Contains(strings.ReplaceAll(err.Error(), "begin with", "with"), want) {
				w.Errorf("%+v: %v", q, err)
			}
		}
		amy, bob := w.connect(0, "amy"), w.connect(0, "bob")
		o := clientroom.CreateOptions{Mode: "battle", Key: "k1"}
		first, second, other := w.create(amy, o), w.create(amy, o), w.create(bob, o)
		if first.ID != second.ID || second.N != 1 || other.ID == first.ID {
			w.Errorf("created %s, %s and %s", first.ID, second.ID, other.ID)
		}
		guest := w.At(0).Connect(w.T, "", nil)
		_, err := clientroom.New(guest).Create(ctx, o)
		w.refused(err, wire.Forbidden)
		closed := w.create(amy, clientroom.CreateOptions{Mode: "closed"})
		_, err = bob.Get(ctx, closed.ID)
		w.refused(err, wire.Forbidden)
		_, err = bob.Create(ctx, clientroom.CreateOptions{Mode: "closed", ID: closed.ID})
		w.refused(err, wire.Conflict)
		if d, ok := errors.AsType[*client.DetailedError](err); ok {
			w.Errorf("bob sees %s", d.Data)
		}
		open := w.create(amy, clientroom.CreateOptions{Mode: "battle"})
		_, err = bob.Create(ctx, clientroom.CreateOptions{Mode: "battle", ID: open.ID})
		if d, ok := errors.AsType[*client.DetailedError](err); !ok || !strings.Contains(string(d.Data), open.ID) {
			w.Errorf("the conflict is %v", err)
		}
	})
}
