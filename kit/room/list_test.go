package room_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/client"
	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/internal/wire"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
)

// recorder keeps the events of rooms, by room and key.
type recorder struct {
	mu     sync.Mutex // guards the field below
	events map[string]room.Ended
}

func (r *recorder) Emit(_ context.Context, kind, subject, key string, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e room.Ended
	if err := json.Unmarshal(data, &e); err != nil || kind != "room_ended" {
		return fmt.Errorf("%s: %v", kind, err)
	}
	if r.events == nil {
		r.events = map[string]room.Ended{}
	}
	r.events[subject+" "+key] = e
	return nil
}

// of returns the events of a room.
func (r *recorder) of(id string) (list []room.Ended) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Room == id {
			list = append(list, e)
		}
	}
	return list
}

// eachListed is each with brokers that share an index, and modes whose rooms end soon.
func eachListed(t *testing.T, n int, test func(w *world, r *recorder)) {
	w := &world{}
	var shared index.Index
	var events *recorder
	kittest.Each(t, n, func(o *broker.Options) {
		if len(w.rooms)%n == 0 || !o.Store.Shared {
			shared, events = index.NewMemory(), &recorder{}
		}
		o.Extensions = append(o.Extensions, func(h *extension.Host) (extension.Extension, error) {
			list := modes()
			list["short"] = room.Mode{Capacity: 4, EmptyLife: 50 * time.Millisecond, FinishedLife: 100 * time.Millisecond}
			list["results"] = room.Mode{Capacity: 4, EmptyLife: time.Hour, FinishedEmptyLife: 50 * time.Millisecond}
			rooms, err := room.New(h, room.Options{Modes: list, Index: shared, Events: events})
			if err != nil {
				return extension.Extension{}, err
			}
			w.rooms, w.hosts = append(w.rooms, rooms), append(w.hosts, h)
			return rooms.Extension(), nil
		})
	}, func(t *testing.T, b *kittest.Brokers) {
		w.T, w.Brokers = t, b
		defer func() { w.rooms, w.hosts = nil, nil }()
		test(&world{T: t, Brokers: b, rooms: w.rooms[len(w.rooms)-len(b.List):], hosts: w.hosts[len(w.hosts)-len(b.List):]}, events)
	})
}

// settle computes the cards of all rooms that have changed.
func (w *world) settle() {
	w.Helper()
	for _, r := range w.rooms {
		if err := r.Settle(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
}

// rounds looks at the rooms and lobbies that are due, as each broker does every second.
func (w *world) rounds() {
	w.Helper()
	for _, r := range w.rooms {
		if err := r.Round(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
}

// make makes a room of the backend.
func (w *world) make(q room.CreateRequest) {
	w.Helper()
	if _, err := w.rooms[0].Create(w.Context(), room.Backend, q); err != nil {
		w.Fatal(err)
	}
}

// list returns the ids of the rooms of all pages of a query, and the number of pages.
func (w *world) list(query string) (ids []string) {
	w.Helper()
	w.settle()
	cursor := ""
	for {
		page := w.http(200, "GET", "/v1/rooms?"+query+"&cursor="+cursor, nil)
		for _, card := range page["rooms"].([]any) {
			ids = append(ids, card.(map[string]any)["id"].(string))
		}
		if page["next"] != page["cursor"] {
			w.Errorf("%s: a page has the cursor %v and, by its former name, %v", query, page["cursor"], page["next"])
		}
		if cursor, _ = page["cursor"].(string); cursor == "" {
			return ids
		}
	}
}

func (w *world) wantList(query, want string) {
	w.Helper()
	if got := strings.Join(w.list(query), " "); got != want {
		w.Errorf("%s lists %q, want %q", query, got, want)
	}
}

// TestLists lists rooms by each attribute and in each order.
func TestLists(t *testing.T) {
	eachListed(t, 2, func(w *world, _ *recorder) {
		ctx := w.Context()
		amy, bob := w.connect(0, "amy"), w.connect(1, "bob")
		a := w.create(amy, clientroom.CreateOptions{ID: "a", Mode: "battle", Region: "eu"})
		w.create(bob, clientroom.CreateOptions{ID: "b", Mode: "battle", Region: "us"})
		w.create(amy, clientroom.CreateOptions{ID: "c", Mode: "closed", Visibility: "private", Region: "eu"})
		w.make(room.CreateRequest{ID: "d", Mode: "closed", Capacity: 1})
		for query, want := range map[string]string{
			"":                                     "a b c d",
			"limit=1":                              "a b c d",
			"limit=1&desc=1":                       "d c b a",
			"mode=battle":                          "a b",
			"mode=closed&visibility=public":        "d",
			"visibility=private":                   "c",
			"region=eu":                            "a c",
			"region=eu&mode=battle":                "a",
			"region=us&status=waiting":             "b",
			"owner=amy":                            "a c",
			"owner=amy&mode=closed&limit=1":        "c",
			"free=3":                               "a b c",
			"free=4&limit=1":                       "c",
			"status=playing":                       "",
			"order=started":                        "",
			"from=9000000000000":                   "",
			"to=1":                                 "",
			"mode=none":                            "",
			"owner=none%20%7B%7D%2F&order=created": "",
		} {
			w.wantList(query, want)
		}
		w.join(bob, "a", 2)
		if err := a.Start(ctx); err != nil {
			w.Fatal(err)
		}
		w.wantList("status=playing&order=started", "a")
		w.wantList("order=started&mode=battle&region=eu", "a")
		w.wantList("status=waiting", "b c d")
		w.wantList("order=activity&desc=true&limit=2&mode=battle", "a b")
		if err := a.Leave(ctx); err != nil {
			w.Fatal(err)
		}
		w.wantList("owner=bob", "a b")
		w.wantList("owner=amy", "c")
		if err := w.join(bob, "a", 2).Finish(ctx); err != nil {
			w.Fatal(err)
		}
		w.wantList("order=ended", "a")
		w.settle()
		for query, want := range map[string]float64{"": 4, "mode=battle": 2, "status=finished&mode=battle": 1, "owner=amy": 1, "region=eu": 2} {
			if got := w.http(200, "GET", "/v1/room-count?"+query, nil)["count"]; got != want {
				w.Errorf("%s counts %v, want %v", query, got, want)
			}
		}
		for _, bad := range []string{"order=x", "limit=1001", "free=-1", "desc=2", "cursor=x", "status=x", "visibility=x"} {
			w.http(400, "GET", "/v1/rooms?"+bad, nil)
		}
		w.http(400, "GET", "/v1/room-count?region=eu&mode=battle", nil)
		several := w.http(200, "POST", "/v1/rooms/query", object{"rooms": []string{"a", "none", "c"}})
		if rooms := several["rooms"].([]any); len(rooms) != 2 {
			w.Errorf("the query returns %v", rooms)
		}
		w.http(400, "POST", "/v1/rooms/query", object{"rooms": []string{}})
		w.http(200, "DELETE", "/v1/rooms/a", nil)
		w.wantList("", "b c d")
	})
}

// TestClientLists checks what clients see of lists, and their own rooms.
func TestClientLists(t *testing.T) {
	eachListed(t, 2, func(w *world, _ *recorder) {
		ctx := w.Context()
		amy, bob := w.connect(0, "amy"), w.connect(1, "bob")
		w.create(amy, clientroom.CreateOptions{ID: "a", Mode: "battle"})
		w.create(bob, clientroom.CreateOptions{ID: "b", Mode: "battle", Visibility: "private"})
		w.settle()
		page, err := amy.List(ctx, clientroom.ListOptions{})
		if err != nil || len(page.Rooms) != 1 || page.Rooms[0].ID != "a" || page.Rooms[0].Members != 1 {
			w.Errorf("amy sees %+v, %v", page, err)
		}
		_, err = amy.List(ctx, clientroom.ListOptions{Visibility: "private"})
		w.refused(err, wire.Forbidden)
		w.join(bob, "a", 2)
		w.http(200, "POST", "/v1/rooms/b/reserve", object{"users": []string{"amy"}})
		w.settle()
		mine, err := amy.Mine(ctx, "")
		if err != nil || len(mine.Rooms) != 2 || mine.Rooms[0].N != 1 || !mine.Rooms[1].Reserved || mine.Rooms[1].N != 2 {
			w.Errorf("amy is in %+v, %v", mine, err)
		}
		w.http(200, "POST", "/v1/rooms/a/leave", object{"user": "amy"})
		w.settle()
		rooms := w.http(200, "GET", "/v1/users/amy/rooms", nil)["rooms"].([]any)
		if len(rooms) != 1 || rooms[0].(map[string]any)["id"] != "b" {
			w.Errorf("amy is in %v", rooms)
		}
	})
}

// TestLobby follows a lobby while rooms open, fill and end.
func TestLobby(t *testing.T) {
	t.Parallel() // it mostly waits
	eachListed(t, 2, func(w *world, _ *recorder) {
		ctx := w.Context()
		c := w.At(0).Connect(w.T, "eve", nil)
		rooms := clientroom.New(c)
		lobby, err := rooms.Lobby(ctx, "battle", "")
		if err != nil {
			w.Fatal(err)
		}
		want := func(what, want string) {
			w.Helper()
			await.True(w.T, what+": the lobby has "+want, func() bool {
				var got []string
				for _, card := range lobby.Rooms() {
					got = append(got, fmt.Sprintf("%s=%d", card.ID, card.Members))
				}
				slices.Sort(got)
				return strings.Join(got, " ") == want
			})
		}
		amy := w.connect(1, "amy")
		a := w.create(amy, clientroom.CreateOptions{ID: "a", Mode: "battle", Region: "eu", Capacity: 2})
		w.make(room.CreateRequest{ID: "b", Mode: "battle"})
		w.make(room.CreateRequest{ID: "c", Mode: "battle", Visibility: room.Private})
		want("two rooms", "a=1 b=0")
		bob := w.join(w.connect(0, "bob"), "a", 2)
		want("a is full", "b=0")
		if err := bob.Leave(ctx); err != nil {
			w.Fatal(err)
		}
		want("a is open", "a=1 b=0")
		if err := a.Lock(ctx, true); err != nil {
			w.Fatal(err)
		}
		want("a is locked", "b=0")
		w.http(200, "DELETE", "/v1/rooms/b", nil)
		want("b has ended", "")
		_, err = c.Update(ctx, "lobby:battle", client.Set("room/x", 1))
		w.refused(err, wire.Forbidden)
	})
}

// TestEnds checks that empty and finished rooms end, and that the backend receives one event with
// the final state.
func TestEnds(t *testing.T) {
	t.Parallel() // it mostly waits
	eachListed(t, 2, func(w *world, r *recorder) {
		ctx := w.Context()
		w.make(room.CreateRequest{ID: "empty", Mode: "short"})
		amy := w.connect(0, "amy")
		c := w.At(1).Connect(w.T, "bob", nil)
		done := w.create(amy, clientroom.CreateOptions{ID: "done", Mode: "short", Nickname: "Amy"})
		w.join(clientroom.New(c), "done", 2)
		if _, err := c.Update(ctx, done.Channel, client.Set("g/score", 7)); err != nil {
			w.Fatal(err)
		}
		if err := done.Finish(ctx); err != nil {
			w.Fatal(err)
		}
		w.make(room.CreateRequest{ID: "kept", Mode: "battle"})
		w.http(200, "DELETE", "/v1/rooms/kept", nil)
		for id, reason := range map[string]room.Reason{"empty": room.ReasonEmpty, "done": room.ReasonFinished, "kept": room.ReasonDeleted} {
			await.True(w.T, id+" ends", func() bool { return len(r.of(id)) > 0 })
			list := r.of(id)
			if len(list) != 1 || list[0].Reason != reason {
				w.Errorf("the events of %s are %+v", id, list)
			}
		}
		final := r.of("done")[0]
		if string(final.Fields["g/score"]) != "7" || len(final.Final.Members) != 2 || final.Final.Members[0].User != "amy" {
			w.Errorf("the final state is %+v", final)
		}
		await.True(w.T, "no room is listed", func() bool { return len(w.list("")) == 0 })
		w.wantMembers("done", "not_found")
	})
}

// TestMetrics checks the counts of rooms and players.
func TestMetrics(t *testing.T) {
	eachListed(t, 2, func(w *world, _ *recorder) {
		a := w.create(w.connect(0, "amy"), clientroom.CreateOptions{ID: "a", Mode: "battle"})
		w.join(w.connect(1, "bob"), "a", 2)
		w.http(200, "POST", "/v1/rooms/a/reserve", object{"users": []string{"cat"}})
		w.create(w.connect(1, "dan"), clientroom.CreateOptions{ID: "b", Mode: "battle"})
		w.make(room.CreateRequest{ID: "racing:c", Mode: "racing"})
		if err := a.Start(w.Context()); err != nil {
			w.Fatal(err)
		}
		w.settle()
		gauges := prometheus.NewRegistry()
		gauges.MustRegister(w.rooms[0].Extension().Metrics...)
		families, err := gauges.Gather()
		if err != nil {
			w.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				if v := m.GetGauge().GetValue(); v != 0 {
					got[name] = v
				}
			}
		}
		want := map[string]float64{
			"switchboard_room_players battle": 3, "switchboard_rooms battle playing": 1,
			"switchboard_rooms battle waiting": 1, "switchboard_rooms racing waiting": 1,
		}
		if !maps.Equal(got, want) {
			w.Errorf("the gauges are %v, want %v", got, want)
		}
	})
}
