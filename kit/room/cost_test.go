package room_test

import (
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/client"
	"switchboard/internal/wire"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
)

// costWorld is a broker whose calls of the store are counted. It makes no rounds.
type costWorld struct {
	*world
	cost  *kittest.Cost
	index index.Index // without the count
	// prepared are the same rooms, which prepare what an operation needs. Notes on the due list serve
	// only the process that wrote them, so the operation itself writes its own.
	prepared *room.Rooms
}

func newCostWorld(t *testing.T) *costWorld {
	w := &costWorld{world: &world{T: t, Brokers: &kittest.Brokers{}}, cost: &kittest.Cost{}, index: index.NewMemory()}
	options := room.Options{Modes: modes(), Index: w.cost.Index(w.index)}
	w.List = append(w.List, kittest.NewMemory().Start(t, func(o *broker.Options) {
		o.Store.Queue = w.cost.Queue(o.Store.Queue)
		o.Extensions = append(o.Extensions, func(h *extension.Host) (_ extension.Extension, err error) {
			if w.prepared, err = room.New(h, options); err != nil {
				return extension.Extension{}, err
			}
			r, err := room.New(h, options)
			if err != nil {
				return extension.Extension{}, err
			}
			w.rooms = append(w.rooms, r)
			e := r.Extension()
			e.Run = nil
			return e, nil
		})
	}))
	return w
}

// prepare makes a room with a reservation for each of the users, and returns its id. It is not
// counted.
func (w *costWorld) prepare(id string, users ...string) string {
	w.Helper()
	defer func() { _ = w.cost.String() }()
	if _, err := w.prepared.Create(w.Context(), room.Backend, room.CreateRequest{ID: id, Mode: "battle"}); err != nil {
		w.Fatal(err)
	}
	if len(users) > 0 {
		if _, err := w.prepared.Reserve(w.Context(), id, room.ReserveRequest{Users: users}); err != nil {
			w.Fatal(err)
		}
	}
	return id
}

// TestCosts counts the scripts of each operation. The page of the documentation has the same rows.
func TestCosts(t *testing.T) {
	w := newCostWorld(t)
	ctx, r := t.Context(), w.rooms[0]
	row := w.cost.Documented(t, "../../docs/rooms.md")
	amy := w.At(0).Connect(t, "amy", nil)
	call := func(method string, data object) func() error {
		return func() error { return amy.Call(ctx, method, data, nil) }
	}
	yan, zoe := w.At(0).Connect(t, "yan", nil), w.At(0).Connect(t, "zoe", nil)
	quick := func(c *client.Client) func() error {
		return func() error { return c.Call(ctx, "room.quick", object{"mode": "racing"}, nil) }
	}
	in := func(id string) object { return object{"room": id} }
	ignore := func(_ any, err error) error { return err }
	w.prepare("new")
	w.prepare("held", "amy")
	w.prepare("full", "a", "b", "c", "d")
	w.prepare("kicked", "bob")
	w.prepare("spare")
	for _, op := range []struct {
		name string
		call func() error
		code wire.ErrorCode
	}{
		{"get", call("room.get", in("new")), ""},
		{"quick join: a new room", quick(yan), ""},
		{"quick join", quick(zoe), ""},
		{"create", call("room.create", object{"id": "created", "mode": "battle"}), ""},
		{"join", call("room.join", in("new")), ""},
		{"join: a reserved place, or another device", call("room.join", in("held")), ""},
		{"join: the room is full", call("room.join", in("full")), wire.Full},
		{"kick", func() error { return ignore(r.Kick(ctx, room.Backend, "kicked", 1)) }, ""},
		{"reserve", func() error {
			return ignore(r.Reserve(ctx, "spare", room.ReserveRequest{Users: []string{"cat", "dan"}}))
		}, ""},
		{"leave", func() error { return ignore(r.Leave(ctx, room.Backend, w.prepare("left", "eve"), "eve")) }, ""},
		{"leave: repeated", func() error { return ignore(r.Leave(ctx, room.Backend, "left", "eve")) }, wire.NotFound},
		{"patch, lock, start, finish", func() error { return ignore(r.Lock(ctx, room.Backend, w.prepare("locked"), true)) }, ""},
		{"patch, lock, start, finish: nothing changes", func() error { return ignore(r.Lock(ctx, room.Backend, "locked", true)) }, ""},
		{"delete", func() error { return r.Delete(ctx, w.prepare("deleted"), 0) }, ""},
		{"query of n rooms: each", func() error { return ignore(r.Query(ctx, []string{"new"})) }, ""},
	} {
		_ = w.cost.String()
		err := op.call()
		if op.code != "" {
			w.refused(err, op.code)
		} else if err != nil {
			t.Fatalf("%s: %v", op.name, err)
		}
		row(op.name)
	}
}

// TestListCosts counts the scripts of lists, of cards and of the round.
func TestListCosts(t *testing.T) {
	w := newCostWorld(t)
	ctx, r := t.Context(), w.rooms[0]
	row := w.cost.Documented(t, "../../docs/rooms.md")
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Create(ctx, room.Backend, room.CreateRequest{ID: "a", Mode: "battle"}))
	_ = w.cost.String()
	w.settle()
	row("the card of a room, and its lobby")
	must(r.Lock(ctx, room.Backend, "a", true))
	w.settle()
	must(r.Reserve(ctx, w.prepare("b"), room.ReserveRequest{Users: []string{"amy"}}))
	w.settle()
	if err := w.index.Schedule(ctx, -time.Second, "a"); err != nil {
		t.Fatal(err)
	}
	_ = w.cost.String()
	must(nil, r.Round(ctx))
	row("a round in which one idle room is due")
	must(r.List(ctx, room.Backend, room.ListRequest{}))
	row("list, count")
	must(r.Mine(ctx, room.Backend, "amy", room.MineRequest{}))
	row("mine, with one room")
}
