package room_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
)

// The work of TestMovedSlot.
const (
	movers = 4 // players, which is the capacity of the room
	rounds = 5 // joins of each player
	steps  = 3 // changes in each round
	moves  = 6 // of the slot; even, so that it is back at the end
)

// TestMovedSlot moves the Cluster slot of a room several times while players join, change their
// fields and leave. An operation may be refused as unavailable, and then it has not happened.
func TestMovedSlot(t *testing.T) {
	each(t, 2, func(w *world) {
		if !w.Cluster {
			w.Skip("only a Cluster has slots")
		}
		if _, err := w.rooms[0].Create(w.Context(), room.Backend, room.CreateRequest{ID: "moves", Mode: "battle"}); err != nil {
			w.Fatal(err)
		}
		var attempts, refusals atomic.Int64
		var stopped atomic.Bool
		// try repeats an operation until it is not refused as unavailable.
		try := func(what string, op func() error) bool {
			for w.Context().Err() == nil {
				err := op()
				attempts.Add(1)
				if err == nil {
					return true
				}
				if codeOf(err) != string(wire.Unavailable) {
					w.Errorf("%s: %v", what, err)
					return false
				}
				refusals.Add(1)
			}
			return false
		}
		var mu sync.Mutex // guards players
		var players []int // the number of each round of each player
		play := func(r *clientroom.Rooms) {
			var mine *clientroom.Room
			if !try("join", func() (err error) { mine, err = r.Join(w.Context(), "moves", clientroom.JoinOptions{}); return err }) {
				return
			}
			mu.Lock()
			players = append(players, mine.N)
			mu.Unlock()
			for step := range steps {
				try("set", func() error { return mine.Set(w.Context(), "step", step) })
			}
			try("leave", func() error { return mine.Leave(w.Context()) })
		}
		var wg sync.WaitGroup
		for i := range movers {
			r := w.connect(i, "user"+strconv.Itoa(i))
			wg.Go(func() {
				for n := 0; n < rounds || !stopped.Load(); n++ {
					if play(r); w.Failed() {
						return
					}
				}
			})
		}
		more := func(what string, n int64) {
			from := attempts.Load()
			await.True(w.T, what, func() bool { return attempts.Load() >= from+n || w.Failed() })
		}
		from, _, err := kittest.Cluster.Of(w.Context(), "{"+room.Channel("moves")+"}")
		if err != nil {
			w.Fatal(err)
		}
		to := kittest.Cluster.Masters[(slices.Index(kittest.Cluster.Masters, from)+1)%len(kittest.Cluster.Masters)]
		for range moves {
			more("operations before the move", 2*movers)
			if err := kittest.Cluster.MoveSlot(w.Context(), "{"+room.Channel("moves")+"}", from, to, func() {
				more("operations during the move", movers)
			}); err != nil {
				w.Error(err)
				break
			}
			from, to = to, from
		}
		stopped.Store(true)
		wg.Wait()
		if refusals.Load() == 0 {
			w.Error("no operation met the move")
		}
		w.checkCapacity("moves", 4)
		w.checkPlayed("moves", players)
		w.wantMembers("moves", "owner 0")
	})
}

// checkPlayed checks that each player of a number has joined once, done each step once and in
// order, and left once.
func (w *world) checkPlayed(id string, players []int) {
	w.Helper()
	got := map[int]string{} // what each player did, in order
	w.fold(id, func(_ *state.Map, e *state.Entry) {
		for name, value := range e.Set {
			var n int
			switch {
			case strings.HasPrefix(name, "member/"):
				n, _ = strconv.Atoi(name[len("member/"):])
				got[n] += "join "
			case strings.HasSuffix(name, "/step"):
				_, _ = fmt.Sscanf(name, "p/%d/step", &n)
				got[n] += string(value) + " "
			}
		}
		for _, name := range e.Del {
			if number, found := strings.CutPrefix(name, "member/"); found {
				n, _ := strconv.Atoi(number)
				got[n] += "leave"
			}
		}
	})
	want := "join "
	for step := range steps {
		want += strconv.Itoa(step) + " "
	}
	want += "leave"
	for _, n := range players {
		if got[n] != want {
			w.Errorf("player %d did %q, want %q", n, got[n], want)
		}
	}
	if len(got) != len(players) {
		w.Errorf("the log has %d players, want %d", len(got), len(players))
	}
}
