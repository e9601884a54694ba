package room_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
)

// countedIndex counts the calls of an index. Each is one script in Redis.
type countedIndex struct {
	index.Index
	schedules, gets, puts, versions atomic.Int64
	fail                            atomic.Bool // calls of Get and Put fail
}

var errIndex = errors.New("the index of the test fails")

func (c *countedIndex) Schedule(ctx context.Context, in time.Duration, ids ...string) error {
	c.schedules.Add(1)
	return c.Index.Schedule(ctx, in, ids...)
}

func (c *countedIndex) Get(ctx context.Context, ids ...string) ([]index.Card, error) {
	if c.gets.Add(1); c.fail.Load() {
		return nil, errIndex
	}
	return c.Index.Get(ctx, ids...)
}

func (c *countedIndex) Put(ctx context.Context, cards ...index.Card) error {
	if c.puts.Add(1); c.fail.Load() {
		return errIndex
	}
	return c.Index.Put(ctx, cards...)
}

func (c *countedIndex) Versions(ctx context.Context, ids ...string) ([]int64, error) {
	c.versions.Add(1)
	return c.Index.Versions(ctx, ids...)
}

// counts returns the numbers of calls since the last time: of Schedule, Get and Put.
func (c *countedIndex) counts() string {
	return fmt.Sprint(c.schedules.Swap(0), c.gets.Swap(0), c.puts.Swap(0))
}

// counted runs a test over each kind of store with one broker that makes no rounds.
func counted(t *testing.T, test func(w *world, i *countedIndex)) {
	w, lists := &world{}, &countedIndex{}
	kittest.Each(t, 1, func(o *broker.Options) {
		o.Extensions = append(o.Extensions, func(h *extension.Host) (extension.Extension, error) {
			lists = &countedIndex{Index: index.NewMemory()}
			r, err := room.New(h, room.Options{Modes: modes(), Index: lists})
			if err != nil {
				return extension.Extension{}, err
			}
			w.rooms, w.hosts = []*room.Rooms{r}, []*extension.Host{h}
			e := r.Extension()
			e.Run = nil // the test makes the rounds
			return e, nil
		})
	}, func(t *testing.T, b *kittest.Brokers) {
		w.T, w.Brokers = t, b
		test(w, lists)
	})
}

// round makes a round in which the room a is due.
func (w *world) round(i index.Index) {
	w.Helper()
	if err := i.Schedule(w.Context(), -time.Second, "a"); err != nil {
		w.Fatal(err)
	}
	if err := w.rooms[0].Round(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// TestGather checks that several changes of a room need one note on the due list and one card, and
// that the card includes all of them.
func TestGather(t *testing.T) {
	counted(t, func(w *world, i *countedIndex) {
		a := w.create(w.connect(0, "amy"), clientroom.CreateOptions{ID: "a", Mode: "battle"})
		for n := range 3 {
			w.join(w.connect(0, fmt.Sprint("user", n)), "a", n+2)
		}
		w.settle()
		if got := i.counts(); got != "1 1 1" {
			w.Errorf("4 changes made %s notes, reads and writes of cards", got)
		}
		w.wantList("free=1", "")
		if err := a.Leave(w.Context()); err != nil {
			w.Fatal(err)
		}
		w.wantList("free=1", "a")
	})
}

// TestCardAfterFailure checks that a round computes a card that could not be stored after the
// change, as after the end of the process.
func TestCardAfterFailure(t *testing.T) {
	t.Parallel() // it mostly waits
	counted(t, func(w *world, i *countedIndex) {
		i.fail.Store(true)
		w.create(w.connect(0, "amy"), clientroom.CreateOptions{ID: "a", Mode: "battle"})
		w.settle()
		i.fail.Store(false)
		w.wantList("", "")
		await.True(w.T, "the room is due, and a round computes its card", func() bool {
			if err := w.rooms[0].Round(w.Context()); err != nil {
				w.Fatal(err)
			}
			return len(w.list("")) == 1
		})
	})
}

// TestIdleRound checks that a round reads a room again only if something has happened: a change of
// the channel, or of its card.
func TestIdleRound(t *testing.T) {
	counted(t, func(w *world, i *countedIndex) {
		ctx := w.Context()
		w.create(w.connect(0, "amy"), clientroom.CreateOptions{ID: "a", Mode: "battle"})
		w.settle()
		i.counts()
		w.round(i.Index)
		if got := i.counts(); got != "0 0 0" || i.versions.Load() == 0 {
			w.Errorf("a round over an idle room made %s notes, reads and writes of cards", got)
		}
		w.join(w.connect(0, "bob"), "a", 2)
		i.counts()
		w.round(i.Index)
		if got := i.counts(); got != "1 2 1" { // with the lobby
			w.Errorf("a round after a change made %s notes, reads and writes of cards", got)
		}
		stored, err := i.Index.Versions(ctx, "a")
		if err != nil {
			w.Fatal(err)
		}
		if err := i.Index.Put(ctx, index.Card{ID: "a", Version: stored[0] + 1}); err != nil {
			w.Fatal(err)
		}
		w.round(i.Index)
		if got := i.counts(); got != "0 1 1" {
			w.Errorf("a round after the loss of the card made %s notes, reads and writes of cards", got)
		}
	})
}
