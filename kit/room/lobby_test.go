package room_test

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/internal/await"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
	"switchboard/queue"
)

// TestLobbyLimit checks that a lobby has the newest rooms if there are too many, and older ones
// again when newer ones have ended.
func TestLobbyLimit(t *testing.T) {
	var rooms *room.Rooms
	var host *extension.Host
	i := index.NewMemory()
	kittest.Each(t, 1, func(o *broker.Options) {
		o.Extensions = append(o.Extensions, func(h *extension.Host) (extension.Extension, error) {
			var err error
			host = h
			if rooms, err = room.New(h, room.Options{Modes: modes(), Index: i}); err != nil {
				return extension.Extension{}, err
			}
			e := rooms.Extension()
			e.Run = nil // the test makes the rounds
			return e, nil
		})
	}, func(t *testing.T, b *kittest.Brokers) {
		if !b.Memory {
			t.Skip("the rooms would take long")
		}
		const extra = 20
		settle := func() {
			t.Helper()
			if err := rooms.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for n := range room.MaxLobby + extra {
			if n == room.MaxLobby {
				settle()
			}
			if _, err := rooms.Create(t.Context(), room.Backend, room.CreateRequest{ID: fmt.Sprintf("r%04d", n), Mode: "battle"}); err != nil {
				t.Fatal(err)
			}
		}
		// bounds returns the number of rooms of the lobby, the first and the last one.
		bounds := func() (n int, first, last string) {
			page := host.ReadStates(t.Context(), []queue.StateRead{{Channel: room.LobbyChannel("battle", ""), Prefix: "room/"}})[0]
			if page.Err != nil || len(page.Value.Fields) == 0 {
				t.Fatalf("the lobby: %+v", page)
			}
			list := page.Value.Fields
			return len(list), strings.TrimPrefix(list[0].Name, "room/"), strings.TrimPrefix(list[len(list)-1].Name, "room/")
		}
		want := func(first, last string) {
			t.Helper()
			await.True(t, "the lobby has the rooms from "+first+" to "+last, func() bool {
				if err := i.Schedule(t.Context(), 1, "lobby/battle"); err != nil {
					t.Fatal(err)
				}
				if err := rooms.Round(t.Context()); err != nil {
					t.Fatal(err)
				}
				n, a, z := bounds()
				return n == room.MaxLobby && a == first && z == last
			})
		}
		settle()
		if n, first, last := bounds(); n != room.MaxLobby || first != "r0000" || last != "r0999" {
			t.Errorf("before the round, the lobby has %d rooms from %s to %s", n, first, last)
		}
		want("r0020", "r1019")
		if err := rooms.Delete(t.Context(), "r1019", 0); err != nil {
			t.Fatal(err)
		}
		settle()
		want("r0019", "r1018")
	})
}
