package room_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/redispipe"
	"switchboard/internal/wire"
	"switchboard/janitor"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
	"switchboard/queue"
	"switchboard/registry"
)

var loadRooms = flag.Int("rooms", 100, "rooms of TestLoad")

var loadPrefixes atomic.Int64

// The sizes of TestLoad.
const (
	loadUsers = 60
	loadSteps = 4 // operations of all users for each room
	loadBeat  = 500 * time.Millisecond
)

// loadWorld is three brokers over one Redis, of which the first one is stopped.
type loadWorld struct {
	*world
	prefix  string // of keys
	urls    []string
	states  *queue.Redis
	index   index.Index
	janitor *janitor.Janitor
	kill    func() // stops the first broker without a word to the store
}

func newLoadWorld(t *testing.T) *loadWorld {
	prefix := fmt.Sprintf("load%d:", loadPrefixes.Add(1))
	w := &loadWorld{prefix: prefix, world: &world{T: t, Brokers: &kittest.Brokers{}}}
	open := func() (*redispipe.Pipe, func() error, *registry.Redis, *queue.Redis) {
		c := kittest.Redis.Client(t)
		pipe := redispipe.New(c, redispipe.Options{Timeout: 5 * time.Second})
		return pipe, c.Close, registry.NewRedis(pipe, registry.Options{Prefix: prefix, Lease: 5 * loadBeat}),
			queue.NewRedis(pipe, queue.Options{Prefix: prefix})
	}
	for i := range 3 {
		pipe, disconnect, reg, q := open()
		b, err := broker.New(broker.Options{
			Name:   fmt.Sprint("b", i),
			Listen: broker.ListenOptions{HTTP: "127.0.0.1:0", TCP: "127.0.0.1:0"},
			Store:  broker.StoreOptions{Registry: reg, Queue: q, Shared: true},
			Timing: broker.TimingOptions{Drain: 10 * time.Millisecond, Beat: loadBeat},
			Extensions: []func(*extension.Host) (extension.Extension, error){func(h *extension.Host) (extension.Extension, error) {
				rooms, err := room.New(h, room.Options{
					Modes: map[string]room.Mode{"battle": {Capacity: 4, Grace: time.Second, EmptyLife: time.Hour}},
					Index: index.NewRedis(pipe, prefix, "rooms"),
				})
				if err != nil {
					return extension.Extension{}, err
				}
				w.rooms, w.hosts = append(w.rooms, rooms), append(w.hosts, h)
				return rooms.Extension(), nil
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		stop := sync.OnceFunc(func() { cancel(); <-done })
		t.Cleanup(stop)
		if i == 0 {
			w.kill = func() { _ = disconnect(); stop() }
		}
		addrs, err := b.Addrs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.List, w.urls = append(w.List, &kittest.Broker{Broker: b, Addrs: addrs}), append(w.urls, "tcp://"+addrs.TCP)
	}
	pipe, _, reg, q := open()
	w.states, w.index = q, index.NewRedis(pipe, prefix, "rooms")
	var err error
	if w.janitor, err = janitor.New(janitor.Options{Registry: reg, Queue: q, Patience: loadBeat}); err != nil {
		t.Fatal(err)
	}
	return w
}

// player is a user that joins and leaves rooms, and loses connections.
type player struct {
	w    *loadWorld
	name string
	*client.Client
	drop func()
}

func (p *player) connect() {
	urls := slices.Clone(p.w.urls)
	rand.Shuffle(len(urls), func(i, k int) { urls[i], urls[k] = urls[k], urls[i] })
	c, err := client.New(client.Options{URLs: urls, Client: "device", User: p.name})
	if err != nil {
		p.w.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	p.Client, p.drop = c, func() { cancel(); <-done }
}

// step makes one random operation on a room.
func (p *player) step(id string) {
	ctx, cancel := context.WithTimeout(p.w.Context(), kittest.Timeout)
	defer cancel()
	var err error
	switch n := rand.IntN(10); {
	case n < 6:
		err = p.Call(ctx, "room.join", object{"room": id}, nil)
	case n < 9:
		err = p.Call(ctx, "room.leave", object{"room": id}, nil)
	default:
		p.drop()
		p.connect()
	}
	expected := []string{string(wire.Full), string(wire.NotFound), string(wire.Unavailable), string(wire.RateLimited)}
	if e, ok := errors.AsType[*client.Error](err); ok && !slices.Contains(expected, string(e.Code)) {
		p.w.Errorf("%s in room %s: %v", p.name, id, err)
	}
}

// TestLoad lets users join, leave and lose connections in many rooms on three brokers, of which
// one is stopped without a word. No room has more members than places, no number is used twice,
// and when it is quiet, the lists, the lobbies and the rooms of users agree with the channels.
func TestLoad(t *testing.T) {
	t.Parallel() // it mostly waits
	w := newLoadWorld(t)
	ids := make([]string, *loadRooms)
	for i := range ids {
		ids[i] = fmt.Sprint("room", i)
		w.make(room.CreateRequest{ID: ids[i], Mode: "battle", Region: fmt.Sprint("r", i%3)})
	}
	var steps atomic.Int64
	halfway := make(chan struct{})
	total := int64(loadSteps * len(ids) * 4)
	var wg sync.WaitGroup
	for i := range loadUsers {
		p := &player{w: w, name: fmt.Sprint("user", i)}
		p.connect()
		t.Cleanup(func() { p.drop() })
		wg.Go(func() {
			for {
				n := steps.Add(1)
				if n == total/2 {
					close(halfway)
				}
				if n > total {
					return
				}
				p.step(ids[rand.IntN(len(ids))])
			}
		})
	}
	<-halfway
	w.kill()
	wg.Wait()
	w.rooms, w.hosts, w.List = w.rooms[1:], w.hosts[1:], w.List[1:]
	w.awaitAgreement()
	for _, id := range ids {
		w.checkCapacity(id, 4)
	}
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	var wrong []string
	// On a busy machine a broker may lose its lease even now, and its players with it.
	err := await.Until(ctx, "the lists agree with the rooms", func() bool {
		wrong = w.differences(ids)
		return len(wrong) == 0
	})
	if err != nil {
		w.Errorf("%v: %q", err, wrong)
	}
}

// awaitAgreement runs janitors until the check finds nothing in two looks.
func (w *loadWorld) awaitAgreement() {
	w.Helper()
	check := room.Check(kit.CheckOptions{Index: w.index, States: w.states})
	last := ""
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	err := await.Until(ctx, "the check finds nothing", func() bool {
		if _, err := w.janitor.ServersRound(ctx); err != nil {
			last = err.Error()
			return false
		}
		found, err := check.Find(ctx)
		last = fmt.Sprint(len(found), " ", found[:min(3, len(found))], err)
		return err == nil && len(found) == 0 && !w.changing()
	})
	if err != nil {
		w.Fatalf("%v: %s", err, last)
	}
}

// changing reports whether a member will leave without a call, because it is away.
func (w *loadWorld) changing() bool {
	for i := range *loadRooms {
		s, err := w.rooms[0].Read(w.Context(), fmt.Sprint("room", i))
		if err != nil || slices.ContainsFunc(s.Members, func(m room.Member) bool { return m.Away }) {
			return true
		}
	}
	return false
}

// differences compares the lists of rooms and users with the channels.
func (w *loadWorld) differences(ids []string) (wrong []string) {
	w.Helper()
	members, players := map[string]int{}, map[string]int{}
	for _, id := range ids {
		s, err := w.rooms[0].Read(w.Context(), id)
		if err != nil {
			w.Fatal(err)
		}
		members[id] = len(s.Members)
		for _, m := range s.Members {
			players[m.User]++
		}
	}
	q := room.ListRequest{Mode: "battle", Limit: 100}
	listed := 0
	for {
		page, err := w.rooms[0].List(w.Context(), room.Backend, q)
		if err != nil {
			w.Fatal(err)
		}
		for _, c := range page.Rooms {
			if listed++; c.Members != members[c.ID] {
				wrong = append(wrong, fmt.Sprintf("the list has %d members of %s, there are %d", c.Members, c.ID, members[c.ID]))
			}
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			break
		}
	}
	if n, err := w.rooms[1].Count(w.Context(), room.ListRequest{Mode: "battle"}); err != nil || n != len(ids) || listed != len(ids) {
		wrong = append(wrong, fmt.Sprintf("%d rooms are listed and %d counted, %v; there are %d", listed, n, err, len(ids)))
	}
	for i := range loadUsers {
		user, in, q := fmt.Sprint("user", i), 0, room.MineRequest{Limit: 100}
		for {
			page, err := w.rooms[1].Mine(w.Context(), room.Backend, user, q)
			if err != nil {
				w.Fatal(err)
			}
			in += len(page.Rooms)
			if q.Cursor = page.Cursor; q.Cursor == "" {
				break
			}
		}
		if in != players[user] {
			wrong = append(wrong, fmt.Sprintf("%s is listed in %d rooms, and is in %d", user, in, players[user]))
		}
	}
	return wrong
}
