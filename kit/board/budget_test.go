package board

import (
	"errors"
	"testing"
	"time"

	"switchboard/broker/extension"
	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/wire"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
)

// TestUsersBeginFewBoards checks that a user may begin few boards of a pattern, that other users
// may submit to them, and that a board ends after its life with its field and its charge.
func TestUsersBeginFewBoards(t *testing.T) {
	t.Parallel() // it mostly waits
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		store := Store(NewMemory())
		if s.Shared {
			store = NewRedis(s.Pipe, s.Prefix)
		}
		var boards *Boards
		i := s.Index("boards")
		b := s.Start(t, kittest.With(func(h *extension.Host) (_ extension.Extension, err error) {
			rules := map[string]Board{"level-*": {Submit: true, Life: time.Second}, "fixed": {Submit: true}}
			if boards, err = NewBoards(h, Options{Store: store, Index: i, Boards: rules, PerUser: 2, Budget: s.Budgets()}); err != nil {
				return extension.Extension{}, err
			}
			e := boards.Extension()
			e.Run = nil // the test makes the rounds
			return e, nil
		}))
		amy, bob := b.Connect(t, "amy", nil), b.Connect(t, "bob", nil)
		submit := func(c *client.Client, board string, want wire.ErrorCode) {
			t.Helper()
			err := c.Call(t.Context(), "board.submit", map[string]any{"board": board, "score": 1}, nil)
			var got wire.ErrorCode
			if e, ok := errors.AsType[*client.Error](err); ok {
				got = wire.ErrorCode(e.Code)
			}
			if got != want || want == "" && err != nil {
				t.Errorf("%s: %v, want %q", board, err, want)
			}
		}
		submit(amy, "level-1", "")
		submit(amy, "level-2", "")
		submit(amy, "level-3", wire.Full)
		submit(amy, "fixed", "")
		submit(bob, "level-1", "")
		submit(bob, "level-3", "")
		submit(amy, "level-3", "")
		boards.budget.Return(t.Context(), "amy", "level-2") // as if it had ended
		submit(amy, "level-4", "")
		await.True(t, "the boards end", func() bool {
			if err := i.Schedule(t.Context(), 1, "level-1", "level-4"); err != nil {
				t.Fatal(err)
			}
			if err := boards.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
			page, err := i.List(t.Context(), index.Query{List: allList})
			if err != nil {
				t.Fatal(err)
			}
			fields, err := boards.host.ReadState(t.Context(), channelPrefix+"level-4", topField)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range page.Cards {
				if c.ID == "level-1" || c.ID == "level-4" {
					return false
				}
			}
			return len(fields) == 0
		})
		gone, err := boards.endedOf(t.Context(), "amy", []string{"level-1", "level-4", "fixed"})
		if err != nil || len(gone) != 2 {
			t.Errorf("the ended boards are %v, %v", gone, err)
		}
	})
}

// TestLife checks the defaults and the bounds of the life of a board.
func TestLife(t *testing.T) {
	for name, c := range map[string]struct {
		pattern string
		board   Board
		want    time.Duration
		bad     bool
	}{
		"a pattern with submit":    {pattern: "a*", board: Board{Submit: true}, want: defaultLife},
		"a name":                   {pattern: "a", board: Board{Submit: true}},
		"a pattern of the backend": {pattern: "a*"},
		"seasons":                  {pattern: "a*", board: Board{Submit: true, Season: "@daily"}},
		"both":                     {pattern: "a*", board: Board{Season: "@daily", Life: time.Hour}, bad: true},
		"negative":                 {pattern: "a*", board: Board{Life: -1}, bad: true},
	} {
		o, err := Options{Store: NewMemory(), Boards: map[string]Board{c.pattern: c.board}}.withDefaults()
		if (err != nil) != c.bad || err == nil && o.Boards[c.pattern].Life != c.want {
			t.Errorf("%s: %v, %v", name, o.Boards[c.pattern].Life, err)
		}
	}
}
