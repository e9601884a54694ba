package board

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"switchboard/broker/extension"
	"switchboard/kit/kittest"
)

// benchPlayers is the size of the board of BenchmarkMillion.
const benchPlayers = 1_000_000

// BenchmarkMillion submits scores and reads ranks on a board with a million players. Filling the
// board in Redis takes about a minute.
func BenchmarkMillion(b *testing.B) {
	for name, open := range map[string]func() (kittest.Store, Store){
		"memory": func() (kittest.Store, Store) { return kittest.NewMemory(), NewMemory() },
		"redis": func() (kittest.Store, Store) {
			s := kittest.NewRedis(kittest.Redis.Client(b))
			return s, NewRedis(s.Pipe, s.Prefix)
		},
	} {
		b.Run(name, func(b *testing.B) {
			s, store := open()
			var boards *Boards
			s.Start(b, kittest.With(func(h *extension.Host) (_ extension.Extension, err error) {
				o := Options{Store: store, Boards: map[string]Board{"big": {Mode: Set, Entries: 2 * benchPlayers}}}
				if boards, err = NewBoards(h, o); err != nil {
					return extension.Extension{}, err
				}
				return boards.Extension(), nil
			}))
			benchBoards(b, boards)
		})
	}
}

func benchBoards(b *testing.B, boards *Boards) {
	player := func(i int) string { return fmt.Sprint("player-", i) }
	submit := func(b *testing.B, i int, score int64) {
		if _, err := boards.Submit(b.Context(), Score{Board: "big", Player: player(i), Score: score}); err != nil {
			b.Error(err)
		}
	}
	forEach(benchPlayers, func(i int) { submit(b, i, rand.Int64N(1_000_000)) })
	b.Run("submit", func(b *testing.B) {
		for b.Loop() {
			submit(b, rand.IntN(benchPlayers), rand.Int64N(1_000_000))
		}
	})
	b.Run("submit/parallel", func(b *testing.B) {
		b.SetParallelism(50)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				submit(b, rand.IntN(benchPlayers), rand.Int64N(1_000_000))
			}
		})
	})
	b.Run("rank", func(b *testing.B) {
		for b.Loop() {
			if _, err := boards.Rank(b.Context(), "big", player(rand.IntN(benchPlayers)), ""); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("top", func(b *testing.B) {
		for b.Loop() {
			if _, err := boards.Top(b.Context(), "big", "", 0, 10); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// forEach calls f for each number below n, 200 at a time.
func forEach(n int, f func(i int)) {
	const workers = 200
	done := make(chan struct{})
	for w := range workers {
		go func() {
			for i := w; i < n; i += workers {
				f(i)
			}
			done <- struct{}{}
		}()
	}
	for range workers {
		<-done
	}
}
