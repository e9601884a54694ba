package room_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"switchboard/client"
	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit/room"
)

// TestBattleArena plays the room of the documents: four players, a fifth one, and a change of the
// owner.
func TestBattleArena(t *testing.T) {
	each(t, 2, func(w *world) {
		ctx := w.Context()
		amy, bob := w.connect(0, "amy"), w.connect(1, "bob")
		arena := w.create(amy, clientroom.CreateOptions{
			ID: "room123", Mode: "battle", Name: "Epic Battle Arena", Region: "us-west", AppVersion: "1.0", Nickname: "Amy",
		})
		_, err := bob.Create(ctx, clientroom.CreateOptions{ID: "room123", Mode: "battle"})
		w.refused(err, wire.Conflict)
		w.join(bob, "room123", 2)
		w.join(w.connect(0, "cat"), "room123", 3)
		w.join(w.connect(1, "dan"), "room123", 4)
		eve := w.connect(0, "eve")
		_, err = eve.Join(ctx, "room123", clientroom.JoinOptions{})
		w.refused(err, wire.Full)
		if d, ok := errors.AsType[*client.DetailedError](err); !ok || string(d.Data) != `{"members":4,"reserved":0,"capacity":4}` {
			w.Errorf("the error has %s", d.Data)
		}
		w.join(bob, "room123", 2)
		w.wantMembers("room123", "owner 1 1=amy 2=bob 3=cat 4=dan")
		if err := arena.Start(ctx); err != nil {
			w.Fatal(err)
		}
		await.True(w.T, "the room plays", func() bool {
			d, _ := arena.Document()
			return d.Status == "playing" && d.Name == "Epic Battle Arena" && len(arena.Members()) == 4 && arena.Members()[0].Nickname == "Amy"
		})
		if err := arena.Leave(ctx); err != nil {
			w.Fatal(err)
		}
		w.refused(arena.Leave(ctx), wire.NotFound)
		w.join(eve, "room123", 5)
		w.wantMembers("room123", "owner 2 2=bob 3=cat 4=dan 5=eve")
		_, err = amy.Join(ctx, "room123", clientroom.JoinOptions{})
		w.refused(err, wire.Full)
		w.refused(w.join(eve, "room123", 5).Finish(ctx), wire.Forbidden)
		if err := w.join(bob, "room123", 2).Finish(ctx); err != nil {
			w.Fatal(err)
		}
		_, err = amy.Join(ctx, "room123", clientroom.JoinOptions{})
		w.refused(err, wire.Locked)
		w.checkCapacity("room123", 4)
		_, err = amy.Join(ctx, "room124", clientroom.JoinOptions{})
		w.refused(err, wire.NotFound)
	})
}

// checkCapacity checks that no number was used twice, and the number of members at each id.
func (w *world) checkCapacity(id string, capacity int) {
	w.Helper()
	used := map[string]bool{}
	before := map[string]bool{}
	w.fold(id, func(fields *state.Map, e *state.Entry) {
		now := map[string]bool{}
		for name := range fields.Fields {
			if strings.HasPrefix(name, "member/") {
				if now[name] = true; !before[name] && used[name] {
					w.Errorf("%s is used again", name)
				}
				used[name] = true
			}
		}
		if len(now) > capacity {
			w.Errorf("there are %d members", len(now))
		}
		if _, err := strconv.Atoi(e.By); e.By != "" && err != nil {
			w.Errorf("a change is by %s", e.By)
		}
		before = now
	})
}

// TestJoinRace joins one room of four from 50 clients on three brokers.
func TestJoinRace(t *testing.T) {
	each(t, 3, func(w *world) {
		if _, err := w.rooms[0].Create(w.Context(), room.Backend, room.CreateRequest{ID: "race", Mode: "battle"}); err != nil {
			w.Fatal(err)
		}
		var mu sync.Mutex // guards in and full
		var in []int
		full := 0
		var wg sync.WaitGroup
		for i := range 50 {
			r := w.connect(i, "user"+strconv.Itoa(i))
			wg.Go(func() {
				joined, err := r.Join(w.Context(), "race", clientroom.JoinOptions{})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					in = append(in, joined.N)
					return
				}
				d, ok := errors.AsType[*client.DetailedError](err)
				if !ok || d.Err.Code != client.Full || string(d.Data) != `{"members":4,"reserved":0,"capacity":4}` {
					w.Errorf("refused with %v", err)
				}
				full++
			})
		}
		wg.Wait()
		slices.Sort(in)
		if !slices.Equal(in, []int{1, 2, 3, 4}) || full != 46 {
			w.Errorf("%v are in, %d are refused", in, full)
		}
		w.checkCapacity("race", 4)
	})
}

// TestPrivateRoom checks the code of a private room, and that only members read it.
func TestPrivateRoom(t *testing.T) {
	each(t, 2, func(w *world) {
		ctx := w.Context()
		ca, cb := w.At(0).Connect(w.T, "amy", nil), w.At(1).Connect(w.T, "bob", nil)
		amy, bob := clientroom.New(ca), clientroom.New(cb)
		den := w.create(amy, clientroom.CreateOptions{Mode: "battle", Visibility: "private"})
		if len(den.Code) != 8 || den.N != 1 || !strings.HasPrefix(den.ID, "battle:") {
			w.Fatalf("created %+v", den)
		}
		_, err := bob.Join(ctx, den.ID, clientroom.JoinOptions{Code: "ABC123"})
		w.refused(err, wire.BadCode)
		_, err = bob.Join(ctx, den.ID, clientroom.JoinOptions{})
		w.refused(err, wire.BadCode)
		_, err = bob.Get(ctx, den.ID)
		w.refused(err, wire.Forbidden)
		_, err = cb.Subscribe(ctx, den.Channel, client.SubscribeOptions{State: true})
		w.refused(err, wire.Forbidden)
		joined, err := bob.Join(ctx, den.ID, clientroom.JoinOptions{Code: den.Code})
		if err != nil || joined.N != 2 {
			w.Fatalf("joined as %+v, %v", joined, err)
		}
		if info, err := bob.Get(ctx, den.ID); err != nil || info.Code != "" || info.Owner != 1 || info.N != 2 {
			w.Errorf("bob sees %+v, %v", info, err)
		}
		if snapshot, ok := cb.Fields(den.Channel); ok {
			for name := range snapshot.Fields {
				if strings.HasPrefix(name, "$$") {
					w.Errorf("bob sees %s", name)
				}
			}
		}
		if err := den.Kick(ctx, 2); err != nil {
			w.Fatal(err)
		}
		await.True(w.T, "bob's subscription ends", func() bool {
			_, ok := cb.Fields(den.Channel)
			return !ok
		})
		_, err = cb.Subscribe(ctx, den.Channel, client.SubscribeOptions{State: true})
		w.refused(err, wire.Forbidden)
		w.refused(den.Kick(ctx, 2), wire.NotFound)
	})
}

// TestLockAndReserve checks that a reserved place counts, keeps its number, and opens a locked
// room.
func TestLockAndReserve(t *testing.T) {
	each(t, 2, func(w *world) {
		ctx := w.Context()
		amy, bob, cat, dan := w.connect(0, "amy"), w.connect(1, "bob"), w.connect(0, "cat"), w.connect(1, "dan")
		arena := w.create(amy, clientroom.CreateOptions{ID: "arena", Mode: "battle"})
		path := "/v1/rooms/arena"
		full := w.http(409, "POST", path+"/reserve", object{"users": []string{"bob", "cat", "dan", "eve"}})
		if data, _ := json.Marshal(full["error"]); !strings.Contains(string(data), `"full"`) {
			w.Errorf("refused with %s", data)
		}
		w.wantMembers("arena", "owner 1 1=amy")
		w.http(200, "POST", path+"/reserve", object{"users": []string{"bob", "cat", "bob"}})
		w.http(200, "POST", path+"/join", object{"user": "cat"})
		w.wantMembers("arena", "owner 1 1=amy 2=bob? 3=cat?")
		if err := arena.Lock(ctx, true); err != nil {
			w.Fatal(err)
		}
		_, err := dan.Join(ctx, "arena", clientroom.JoinOptions{})
		w.refused(err, wire.Locked)
		w.join(cat, "arena", 3)
		w.join(bob, "arena", 2)
		if err := arena.Lock(ctx, false); err != nil {
			w.Fatal(err)
		}
		w.join(dan, "arena", 4)
		w.wantMembers("arena", "owner 1 1=amy 2=bob 3=cat 4=dan")
		w.http(200, "POST", path+"/leave", object{"user": "amy"})
		w.wantMembers("arena", "owner 2 2=bob 3=cat 4=dan")
		w.http(404, "POST", path+"/leave", object{"user": "amy"})
		w.http(200, "POST", path+"/kick", object{"n": 2})
		w.checkCapacity("arena", 4)
	})
}

// TestFields checks who may write which fields, and the writer that others see.
func TestFields(t *testing.T) {
	each(t, 2, func(w *world) {
		ctx := w.Context()
		var by sync.Map
		ca := w.At(0).Connect(w.T, "amy", func(o *client.Options) {
			o.OnMessage = func(m client.Message) {
				if m.Data != nil {
					by.Store(string(m.Data), m.By)
				}
			}
		})
		cb, cc := w.At(1).Connect(w.T, "bob", nil), w.At(1).Connect(w.T, "cat", nil)
		amy, bob := clientroom.New(ca), clientroom.New(cb)
		arena := w.create(amy, clientroom.CreateOptions{ID: "arena", Mode: "battle"})
		if _, err := cc.Subscribe(ctx, arena.Channel, client.SubscribeOptions{State: true}); err != nil {
			w.Fatalf("a spectator: %v", err)
		}
		_, err := cc.Update(ctx, arena.Channel, client.Set("g/round", 1))
		w.refused(err, wire.Forbidden)
		_, err = cc.Publish(ctx, arena.Channel, "hello")
		w.refused(err, wire.Forbidden)
		mine := w.join(bob, "arena", 2)
		if err := mine.Set(ctx, "position", object{"x": 100, "y": 200}); err != nil {
			w.Fatal(err)
		}
		for _, name := range []string{"p/1/position", "p/3/position", "member/2", "$room", "$$owner", "x"} {
			if _, err := cb.Update(ctx, arena.Channel, client.Set(name, 1)); err == nil {
				w.Errorf("bob writes %s", name)
			}
		}
		for i := range room.MaxPlayerFields {
			name := "slot" + strconv.Itoa(i)
			if err := mine.Set(ctx, name, i); (err == nil) != (i < room.MaxPlayerFields-1) {
				w.Errorf("field %d: %v", i, err)
			}
		}
		if err := mine.Set(ctx, "slot0", 7); err != nil {
			w.Error(err)
		}
		if err := arena.Set(ctx, "health", 85); err != nil {
			w.Errorf("amy has fields of her own: %v", err)
		}
		if _, err := cb.Update(ctx, arena.Channel, client.Set("g/round", 1), client.Data("go")); err != nil {
			w.Fatal(err)
		}
		await.True(w.T, "amy sees that bob, player 2, has set the round", func() bool {
			who, _ := by.Load(`"go"`)
			return who == "2"
		})
		if err := mine.Leave(ctx); err != nil {
			w.Fatal(err)
		}
		await.True(w.T, "bob's fields are gone", func() bool {
			_, found := arena.Field("p/2/position")
			_, round := arena.Field("g/round")
			return !found && round
		})
		w.checkCapacity("arena", 4)
	})
}
