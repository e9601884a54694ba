package room_test

import (
	"testing"

	"switchboard/broker/extension"
	clientroom "switchboard/client/room"
	"switchboard/internal/wire"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
)

// TestForget checks that a user that has ended is in no room, that the rooms that it made end if
// they have no other members, and that the others stay.
func TestForget(t *testing.T) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		var rooms *room.Rooms
		var host *extension.Host
		b := s.Start(t, kittest.With(func(h *extension.Host) (_ extension.Extension, err error) {
			host = h
			if rooms, err = room.New(h, room.Options{Modes: modes(), Index: s.Index("rooms"), PerUser: 3, Budget: s.Budgets()}); err != nil {
				return extension.Extension{}, err
			}
			return rooms.Extension(), nil
		}))
		w := &world{T: t, Brokers: &kittest.Brokers{List: []*kittest.Broker{b}}, rooms: []*room.Rooms{rooms}}
		amy, bob, ctx := w.connect(0, "amy"), w.connect(0, "bob"), t.Context()
		for _, id := range []string{"alone", "left", "shared"} {
			w.create(amy, clientroom.CreateOptions{ID: id, Mode: "battle"})
		}
		if _, err := rooms.Leave(ctx, room.Backend, "left", "amy"); err != nil {
			t.Fatal(err)
		}
		w.join(bob, "shared", 2)
		w.create(bob, clientroom.CreateOptions{ID: "of-bob", Mode: "battle"})
		w.join(amy, "of-bob", 2)
		if _, err := amy.Create(ctx, clientroom.CreateOptions{ID: "more", Mode: "battle"}); codeOf(err) != string(wire.Full) {
			t.Fatalf("one more room: %v", err)
		}
		for i, want := range []int{4, 0} {
			removed, err := host.Forget(ctx, "amy")
			if err != nil || removed["rooms"] != want {
				t.Errorf("attempt %d: %v were removed, want %d: %v", i, removed, want, err)
			}
		}
		for _, id := range []string{"alone", "left"} {
			_, err := rooms.Read(ctx, id)
			w.refused(err, wire.NotFound)
		}
		w.wantMembers("shared", "owner 2 2=bob")
		w.wantMembers("of-bob", "owner 1 1=bob")
		w.create(amy, clientroom.CreateOptions{ID: "more", Mode: "battle"})
	})
}
