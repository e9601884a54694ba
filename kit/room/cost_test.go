package room_test

import (
	"testing"

	"switchboard/kit/room"
)

// TestCosts checks the section Costs of docs/rooms.md: the round trips that read the room, and the
// scripts that change it.
func TestCosts(t *testing.T) {
	each(t, 1, func(w *world) {
		if !w.Memory {
			w.Skip("the calls are those of the queue in memory")
		}
		ctx, r := w.Context(), w.rooms[0]
		ignore := func(_ any, err error) error { return err }
		for _, op := range []struct {
			name           string
			reads, changes int64
			call           func() error
		}{
			{"create", 2, 1, func() error {
				return ignore(r.Create(ctx, room.Backend, room.CreateRequest{ID: "costs", Mode: "battle"}))
			}},
			{"get", 1, 0, func() error { return ignore(r.Read(ctx, "costs")) }},
			{"reserve", 1, 1, func() error {
				return ignore(r.Reserve(ctx, "costs", room.ReserveRequest{Users: []string{"amy", "bob"}}))
			}},
			{"leave", 1, 1, func() error { return ignore(r.Leave(ctx, room.Backend, "costs", "amy")) }},
			{"kick", 1, 1, func() error { return ignore(r.Kick(ctx, room.Backend, "costs", 2)) }},
			{"lock", 1, 1, func() error { return ignore(r.Lock(ctx, room.Backend, "costs", true)) }},
			{"repeated lock", 1, 0, func() error { return ignore(r.Lock(ctx, room.Backend, "costs", true)) }},
			{"start", 1, 1, func() error { return ignore(r.Start(ctx, room.Backend, "costs")) }},
			{"finish", 1, 1, func() error { return ignore(r.Finish(ctx, room.Backend, "costs")) }},
			{"delete", 2, 1, func() error { return r.Delete(ctx, "costs", 0) }},
		} {
			reads, changes := w.Reads.Load(), w.Changes.Load()
			if err := op.call(); err != nil {
				w.Fatalf("%s: %v", op.name, err)
			}
			reads, changes = w.Reads.Load()-reads, w.Changes.Load()-changes
			if reads != op.reads || changes != op.changes {
				w.Errorf("%s: %d reads and %d changes, want %d and %d", op.name, reads, changes, op.reads, op.changes)
			}
		}
	})
}
