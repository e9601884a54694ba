package board

import (
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/wire"
)

// TestForget checks that users that have ended are on no board any more, now and in a season that
// is kept, and that other players stay.
func TestForget(t *testing.T) {
	daily, err := parseSeason("@daily")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	opts := Options{
		Boards: map[string]Board{"level-*": {Submit: true}, "chess": {}, "daily": {Season: "@daily", Keep: 2}},
		now:    func() time.Time { return now },
	}
	eachStore(t, opts, func(t *testing.T, f *fixture) {
		for _, player := range []string{"amy", "bob", "eve"} {
			for _, board := range []string{"level-1", "chess", "daily"} {
				f.submit(t, Score{Board: board, Player: player, Score: 1})
			}
		}
		await.True(t, "the boards are listed", func() bool {
			page, err := f.any().List(t.Context(), "", 0)
			return err == nil && len(page.Boards) == 3
		})
		later := *f.boards[0]
		later.opts.now = func() time.Time { return daily.Next(now) } // the season of the scores is a past one
		for i, want := range []int{6, 0} {
			removed, err := later.forget(t.Context(), []string{"amy", "eve", "zoe"})
			if err != nil || removed != want {
				t.Errorf("attempt %d: %d scores were removed, want %d: %v", i, removed, want, err)
			}
		}
		for _, board := range []string{"level-1", "chess", "daily"} {
			_, err := f.any().Rank(t.Context(), board, "amy", "")
			wantCode(t, board, err, wire.NotFound)
			if s, err := f.any().Rank(t.Context(), board, "bob", ""); err != nil || s.Count != 1 {
				t.Errorf("%s: bob is %+v, %v", board, s, err)
			}
		}
	})
}
