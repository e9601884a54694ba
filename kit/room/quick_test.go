package room_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"switchboard/broker/extension"
	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
)

// quickPlayers is players that ask for a quick join.
type quickPlayers struct {
	*world
	rooms  []*clientroom.Rooms
	joined []*clientroom.Room
}

// newPlayers connects players to the brokers, one after the other.
func (w *world) newPlayers(n int) *quickPlayers {
	w.Helper()
	c := &quickPlayers{world: w, joined: make([]*clientroom.Room, n)}
	for i := range n {
		r := w.At(i).Connect(w.T, fmt.Sprintf("player%d", i), nil)
		c.rooms = append(c.rooms, clientroom.New(r))
	}
	for _, r := range c.rooms { // so that a late connection delays no join
		if _, err := r.Mine(w.Context(), ""); err != nil {
			w.Fatal(err)
		}
	}
	return c
}

// arrive makes the quick joins, with a pause between the arrivals.
func (c *quickPlayers) arrive(pause time.Duration, o clientroom.QuickOptions) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), kittest.Timeout)
	defer cancel()
	var group sync.WaitGroup
	tick := time.NewTicker(max(pause, 1))
	defer tick.Stop()
	for i, r := range c.rooms {
		if pause > 0 {
			<-tick.C
		}
		group.Go(func() {
			var err error
			if c.joined[i], err = r.Quick(ctx, o); err != nil {
				c.Errorf("player %d: %v", i, err)
			}
		})
	}
	group.Wait()
}

// check checks that all players are in rooms, none above its capacity, and returns the rooms.
func (c *quickPlayers) check(capacity int) (ids []string) {
	c.Helper()
	players := map[string]int{}
	for i, joined := range c.joined {
		if joined == nil {
			continue
		}
		if players[joined.ID]++; players[joined.ID] == 1 {
			ids = append(ids, joined.ID)
		}
		if joined.N < 1 {
			c.Errorf("player %d has the number %d", i, joined.N)
		}
	}
	for _, id := range ids {
		s, err := c.world.rooms[0].Read(c.Context(), id)
		if err != nil {
			c.Fatal(err)
		}
		if len(s.Members) != players[id] {
			c.Errorf("room %s has %d members, and %d players were sent there", id, len(s.Members), players[id])
		}
		c.checkCapacity(id, capacity)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(players[b], players[a]) })
	return ids
}

// eachShared runs a test over each kind of store, with n brokers. Their lists are in the store.
// Each broker has connections of its own to it. In memory there is one broker.
func eachShared(t *testing.T, n int, test func(w *world, lists index.Index)) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		w := &world{T: t, Brokers: &kittest.Brokers{Memory: !s.Shared}}
		lists := s.Index("rooms")
		for range n {
			if s.Shared {
				s = kittest.OpenRedis(s.Redis, s.Prefix)
				lists = s.Index("rooms")
			}
			w.List = append(w.List, s.Start(t, kittest.With(func(h *extension.Host) (extension.Extension, error) {
				r, err := room.New(h, room.Options{Modes: modes(), Index: lists})
				if err != nil {
					return extension.Extension{}, err
				}
				w.rooms, w.hosts = append(w.rooms, r), append(w.hosts, h)
				return r.Extension(), nil
			})))
			if !s.Shared {
				break
			}
		}
		test(w, lists)
	})
}

// TestQuickAtOnce lets players join at once, and soon after each other, on three brokers, and on
// one in memory. They need at most 1.2 times the rooms into which they fit.
func TestQuickAtOnce(t *testing.T) {
	for _, c := range []struct {
		players int
		pause   time.Duration
	}{{40, 0}, {200, 0}, {40, 5 * time.Millisecond}} {
		t.Run(fmt.Sprintf("%d players, %v apart", c.players, c.pause), func(t *testing.T) {
			eachShared(t, 3, func(w *world, _ index.Index) {
				players := w.newPlayers(c.players)
				players.arrive(c.pause, clientroom.QuickOptions{Mode: "battle"})
				rooms := players.check(4)
				if most := c.players / 4 * 6 / 5; len(rooms) > most {
					w.Errorf("%d players are in %d rooms, at most %d are allowed", c.players, len(rooms), most)
				}
			})
		})
	}
}

// TestQuickRegions lets players of two regions, and some that take any region, join at once. The
// latter fill the rooms of the regions.
func TestQuickRegions(t *testing.T) {
	eachShared(t, 3, func(w *world, _ index.Index) {
		all := w.newPlayers(48)
		var group sync.WaitGroup
		for i, region := range []string{"eu", "us", ""} {
			part := *all
			part.rooms, part.joined = all.rooms[16*i:16*(i+1)], all.joined[16*i:16*(i+1)]
			group.Go(func() { part.arrive(0, clientroom.QuickOptions{Mode: "battle", Region: region}) })
		}
		group.Wait()
		if rooms := all.check(4); len(rooms) > 14 {
			w.Errorf("48 players are in %d rooms", len(rooms))
		}
		for i, joined := range all.joined[:32] {
			s, err := w.rooms[0].Read(w.Context(), joined.ID)
			if want := []string{"eu", "us"}[i/16]; err != nil || s.Room.Region != want {
				w.Errorf("a player of the region %s is in a room of the region %s, %v", want, s.Room.Region, err)
			}
		}
	})
}

// TestQuickFillsTheOldest checks that a player is sent to the oldest open room, and not to one that
// is private, locked, full or playing, or from which it was kicked.
func TestQuickFillsTheOldest(t *testing.T) {
	eachShared(t, 2, func(w *world, _ index.Index) {
		ctx := w.Context()
		amy := w.connect(0, "amy")
		w.make(room.CreateRequest{ID: "private", Mode: "battle", Visibility: room.Private})
		w.make(room.CreateRequest{ID: "full", Mode: "battle", Capacity: 1})
		w.join(amy, "full", 1)
		for _, id := range []string{"locked", "playing", "1-kicked", "2-first", "3-second"} {
			w.make(room.CreateRequest{ID: id, Mode: "battle"})
		}
		_, lockErr := w.rooms[0].Lock(ctx, room.Backend, "locked", true)
		_, startErr := w.rooms[0].Start(ctx, room.Backend, "playing")
		bob := w.connect(1, "bob")
		w.join(bob, "1-kicked", 1)
		_, kickErr := w.rooms[0].Kick(ctx, room.Backend, "1-kicked", 1)
		if err := errors.Join(lockErr, startErr, kickErr); err != nil {
			w.Fatal(err)
		}
		w.settle()
		for _, want := range []string{"2-first", "2-first"} { // a repeated call is sent to the same room
			if joined, err := bob.Quick(ctx, clientroom.QuickOptions{Mode: "battle"}); err != nil || joined.ID != want {
				w.Errorf("bob is in the room %+v, %v, want %s", joined, err, want)
			}
		}
		if joined, err := amy.Quick(ctx, clientroom.QuickOptions{Mode: "battle"}); err != nil || joined.ID != "1-kicked" {
			w.Errorf("amy is in the room %+v, %v", joined, err)
		}
	})
}

// TestQuickLostTakers checks that players whose servers have died block no others: the room that
// one of them was to make is made by the next one, and their places are kept for a time only.
func TestQuickLostTakers(t *testing.T) {
	eachShared(t, 3, func(w *world, lists index.Index) {
		search := func(taker, id string) index.Found {
			f, err := lists.Find(w.Context(), index.Search{
				List: "wait/battle", Taker: "user/" + taker, New: id, Places: 4, Lists: []string{"wait/battle"}, Due: time.Second, Lease: time.Minute,
			})
			if err != nil {
				w.Fatal(err)
			}
			return f
		}
		if f := search("lost1", "battle:lost"); !f.First {
			w.Fatalf("the first taker has a place in %+v", f)
		}
		if f := search("lost2", "battle:other"); f.ID != "battle:lost" {
			w.Fatalf("the second taker has a place in %+v", f)
		}
		players := w.newPlayers(6)
		players.arrive(0, clientroom.QuickOptions{Mode: "battle"})
		rooms := players.check(4)
		if len(rooms) != 2 || !slices.Contains(rooms, "battle:lost") {
			w.Errorf("the players are in the rooms %v", rooms)
		}
	})
}

// TestQuickKilledBroker kills one of three brokers while players arrive. Those of the others have
// all joined, and not in more rooms than with the lost ones.
func TestQuickKilledBroker(t *testing.T) {
	w := newLoadWorld(t)
	players := w.newPlayers(120)
	left := &quickPlayers{world: w.world}
	var group sync.WaitGroup
	for i, r := range players.rooms {
		if i%3 == 0 {
			group.Go(func() {
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				go func() { w.kill(); cancel() }()
				_, _ = r.Quick(ctx, clientroom.QuickOptions{Mode: "battle"})
			})
			continue
		}
		left.rooms = append(left.rooms, r)
	}
	left.joined = make([]*clientroom.Room, len(left.rooms))
	left.arrive(0, clientroom.QuickOptions{Mode: "battle"})
	group.Wait()
	rooms := map[string]bool{}
	for _, joined := range left.joined {
		if joined != nil {
			rooms[joined.ID] = true
		}
	}
	if most := 120 / 4 * 6 / 5; len(rooms) > most {
		t.Errorf("80 of 120 players are in %d rooms, at most %d are allowed", len(rooms), most)
	}
	w.rooms, w.hosts = w.rooms[1:], w.hosts[1:]
	for id := range rooms {
		w.checkCapacity(id, 4)
	}
}

// TestQuickMakerGone lets the player that makes the room lose its connection before the store has
// the room. The others wait for that, and are then in one room.
func TestQuickMakerGone(t *testing.T) {
	each(t, 1, func(w *world) {
		if !w.Memory {
			return // only there can a test stop a change
		}
		players := w.newPlayers(4)
		changes, lost := make(chan struct{}), make(chan struct{})
		w.Before(func() { close(changes); <-lost })
		var group sync.WaitGroup
		group.Go(func() { _, _ = players.rooms[0].Quick(w.Context(), clientroom.QuickOptions{Mode: "battle"}) })
		<-changes
		others := &quickPlayers{world: w, rooms: players.rooms[1:], joined: players.joined[1:]}
		group.Go(func() { others.arrive(0, clientroom.QuickOptions{Mode: "battle"}) })
		w.disconnect("player0")
		close(lost)
		group.Wait()
		for _, joined := range others.joined {
			if joined == nil || joined.ID != others.joined[0].ID {
				w.Errorf("three players are in the rooms %+v", others.joined)
			}
		}
	})
}

// TestQuickFor checks that the backend takes places for users, and joins for clients.
func TestQuickFor(t *testing.T) {
	eachListed(t, 2, func(w *world, _ *recorder) {
		quick := func(user, client string) object {
			return w.http(200, "POST", "/v1/rooms/quick", object{"mode": "battle", "region": "eu", "user": user, "client": client})
		}
		first := quick("amy", "")
		id := first["room"].(string)
		if first["n"] != 1.0 || first["reserved"] != true {
			w.Errorf("the first place is %v", first)
		}
		w.http(404, "POST", "/v1/rooms/quick", object{"mode": "battle", "user": "bob", "client": "phone"})
		w.http(400, "POST", "/v1/rooms/quick", object{"mode": "none", "user": "bob"})
		w.wantMembers(id, "owner 0 1=amy?")
		if got := w.http(200, "GET", "/v1/rooms/"+id, nil); got["owner_user"] != "amy" {
			w.Errorf("the owner of the new room is %v", got["owner_user"])
		}
		phone, _ := w.device(1, "bob", "phone")
		await.True(w.T, "bob is connected", func() bool { c, _ := phone.Identity(); return c == "bob/phone" })
		if got := quick("bob", "phone"); got["room"] != id || got["n"] != 2.0 || got["reserved"] != nil {
			w.Errorf("bob joined %v, want room %s", got, id)
		}
		for n, user := range []string{"cat", "dan"} {
			if got := quick(user, ""); got["room"] != id || got["n"] != float64(n+3) {
				w.Errorf("%s has the place %v, want room %s", user, got, id)
			}
		}
		if got := quick("eve", ""); got["room"] == id {
			w.Errorf("eve has a place in the full room %s", id)
		}
		amy := w.connect(0, "amy")
		w.join(amy, id, 1)
		w.wantMembers(id, "owner 1 1=amy 2=bob 3=cat? 4=dan?")
	})
}
