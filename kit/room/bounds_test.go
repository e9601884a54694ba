package room_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/internal/wire"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
)

// dataOf returns data of a room with n bytes.
func dataOf(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }

// TestCardsLeaveLargeDataOut checks that lists and lobbies have at most MaxCardData bytes of the
// data of a room, and that the room has all of it.
func TestCardsLeaveLargeDataOut(t *testing.T) {
	eachListed(t, 1, func(w *world, _ *recorder) {
		amy := w.connect(0, "amy")
		w.create(amy, clientroom.CreateOptions{ID: "small", Mode: "battle", Data: dataOf(room.MaxCardData)})
		w.create(amy, clientroom.CreateOptions{ID: "large", Mode: "battle", Data: dataOf(room.MaxCardData + 1)})
		w.settle()
		fields, err := w.hosts[0].ReadState(w.Context(), room.LobbyChannel("battle", ""), "room/small", "room/large")
		if err != nil || len(fields) != 2 {
			w.Fatalf("the lobby has %d of the rooms: %v", len(fields), err)
		}
		page, err := amy.List(w.Context(), clientroom.ListOptions{})
		if err != nil || len(page.Rooms) != 2 {
			w.Fatalf("the list is %+v, %v", page, err)
		}
		mine, err := w.rooms[0].Mine(w.Context(), room.Backend, "amy", room.MineRequest{})
		if err != nil || len(mine.Rooms) != 2 {
			w.Fatalf("the rooms of amy are %+v, %v", mine, err)
		}
		for i, c := range page.Rooms {
			var shown clientroom.Card
			if err := json.Unmarshal(fields["room/"+c.ID].Value, &shown); err != nil {
				w.Fatal(err)
			}
			large := c.ID == "large"
			of := mine.Rooms[i]
			if c.DataOmitted != large || (c.Room.Data == nil) != large || shown.DataOmitted != large || (shown.Room.Data == nil) != large ||
				of.DataOmitted != large || (of.Room.Data == nil) != large {
				w.Errorf("the list has %+v, the lobby %+v, the user %+v", c, shown, of)
			}
			got, err := w.rooms[0].Read(w.Context(), c.ID)
			if err != nil || got.Room.Data == nil {
				w.Errorf("the room %s has no data: %v", c.ID, err)
			}
		}
	})
}

// TestListsAreBoundedInBytes checks that a lobby and a page of a list stop at their bytes, and that
// the pages have all rooms.
func TestListsAreBoundedInBytes(t *testing.T) {
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
			return // the store decides by Limits.Bytes, which the suite of the queues compares
		}
		const n = 500
		for i := range n {
			q := room.CreateRequest{ID: fmt.Sprintf("r%04d", i), Mode: "battle", Data: dataOf(room.MaxCardData)}
			if _, err := rooms.Create(t.Context(), room.Backend, q); err != nil {
				t.Fatal(err)
			}
		}
		lobby := func() (size int, last string) {
			fields, err := host.ReadGroup(t.Context(), room.LobbyChannel("battle", ""), "room/")
			if err != nil || len(fields) == 0 {
				t.Fatalf("the lobby has %d rooms: %v", len(fields), err)
			}
			for _, f := range fields {
				size += len(f.Name) + len(f.Value)
			}
			return size, fields[len(fields)-1].Name
		}
		if err := rooms.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if size, _ := lobby(); size > room.MaxLobbyBytes || size < room.MaxLobbyBytes/2 {
			t.Errorf("the lobby has %d bytes", size)
		}
		await.True(t, "the lobby has the newest room", func() bool {
			if err := i.Schedule(t.Context(), 1, "lobby/battle"); err != nil {
				t.Fatal(err)
			}
			if err := rooms.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
			size, last := lobby()
			if size > room.MaxLobbyBytes {
				t.Fatalf("the lobby has %d bytes", size)
			}
			return last == fmt.Sprintf("room/r%04d", n-1)
		})
		seen, cursor := 0, ""
		for {
			page, err := rooms.List(t.Context(), room.Backend, room.ListRequest{Limit: 1000, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			if text, err := json.Marshal(page); err != nil || len(text) > 300<<10 {
				t.Errorf("a page has %d bytes: %v", len(text), err)
			}
			seen += len(page.Rooms)
			if cursor = page.Cursor; cursor == "" {
				break
			}
		}
		if seen != n {
			t.Errorf("the pages have %d rooms", seen)
		}
	})
}

// TestFinishedRoomsWithoutMembersEnd checks that a finished room ends after FinishedEmptyLife when
// its members have left, and that one with a member stays.
func TestFinishedRoomsWithoutMembersEnd(t *testing.T) {
	t.Parallel() // it mostly waits
	eachListed(t, 2, func(w *world, r *recorder) {
		amy := w.connect(0, "amy")
		left := w.create(amy, clientroom.CreateOptions{ID: "left", Mode: "results"})
		stays := w.create(amy, clientroom.CreateOptions{ID: "stays", Mode: "results"})
		for _, one := range []*clientroom.Room{left, stays} {
			if err := one.Finish(w.Context()); err != nil {
				w.Fatal(err)
			}
		}
		if err := left.Leave(w.Context()); err != nil {
			w.Fatal(err)
		}
		await.True(w.T, "the room ends", func() bool { w.settle(); w.rounds(); return len(r.of("left")) > 0 })
		if list := r.of("left"); list[0].Reason != room.ReasonFinished {
			w.Errorf("the event is %+v", list[0])
		}
		w.wantMembers("stays", "owner 1 1=amy")
	})
}

// TestFinishedEmptyLife checks the default of Mode.FinishedEmptyLife, and its bounds.
func TestFinishedEmptyLife(t *testing.T) {
	for life, ok := range map[time.Duration]bool{0: true, time.Hour: true, -time.Second: false, room.MaxFinishedLife + 1: false} {
		_, err := room.New(new(extension.Host), room.Options{Modes: map[string]room.Mode{"a": {FinishedEmptyLife: life}}})
		if (err == nil) != ok {
			t.Errorf("%v: %v", life, err)
		}
	}
}

// TestUsersMakeFewRooms checks that a user has few rooms at once, also after it has left them, that
// the end of a room makes place for the next, and that the backend has no such limit.
func TestUsersMakeFewRooms(t *testing.T) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		var rooms *room.Rooms
		b := s.Start(t, kittest.With(func(h *extension.Host) (_ extension.Extension, err error) {
			if rooms, err = room.New(h, room.Options{Modes: modes(), Index: s.Index("rooms"), PerUser: 3, Budget: s.Budgets()}); err != nil {
				return extension.Extension{}, err
			}
			return rooms.Extension(), nil
		}))
		w := &world{T: t, Brokers: &kittest.Brokers{List: []*kittest.Broker{b}}, rooms: []*room.Rooms{rooms}}
		amy, bob, ctx := w.connect(0, "amy"), w.connect(0, "bob"), t.Context()
		create := func(r *clientroom.Rooms, id string, want wire.ErrorCode) {
			t.Helper()
			if _, err := r.Create(ctx, clientroom.CreateOptions{ID: id, Mode: "battle", Capacity: 1}); codeOf(err) != string(want) && (err != nil || want != "") {
				t.Errorf("%s: %v, want %q", id, err, want)
			}
		}
		create(bob, "a", "")
		create(amy, "a", wire.Conflict) // costs nothing
		for _, id := range []string{"b", "c", "d"} {
			create(amy, id, "")
		}
		create(amy, "d", wire.Conflict)
		create(amy, "e", wire.Full)
		_, err := amy.Quick(ctx, clientroom.QuickOptions{Mode: "battle"})
		w.refused(err, wire.Full)
		if _, err := rooms.Leave(ctx, room.Backend, "b", "amy"); err != nil {
			t.Fatal(err)
		}
		create(amy, "e", wire.Full)
		if _, err := rooms.Create(ctx, room.Backend, room.CreateRequest{ID: "f", Mode: "battle", Owner: "amy"}); err != nil {
			t.Errorf("the backend: %v", err)
		}
		if err := rooms.Delete(ctx, "b", 0); err != nil {
			t.Fatal(err)
		}
		create(amy, "g", "") // another id than that of the room that has ended
		create(amy, "e", wire.Full)
		create(bob, "e", "")
	})
}

// TestListRanges compares the bounds of the parameters of a list with the constants.
func TestListRanges(t *testing.T) {
	for name, most := range map[string]int64{"Free": room.MaxCapacity, "From": index.MaxScore, "To": index.MaxScore} {
		if f, _ := reflect.TypeFor[room.ListRequest]().FieldByName(name); f.Tag.Get("range") != fmt.Sprintf("0,%d", most) {
			t.Errorf("%s has the range %s, want 0 to %d", name, f.Tag.Get("range"), most)
		}
	}
}
