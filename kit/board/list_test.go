package board

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/wire"
	"switchboard/kit/index"
	"switchboard/queue"
)

// list returns the boards of all pages of two, from one broker after the other.
func (f *fixture) list(t *testing.T) (names []string) {
	t.Helper()
	for cursor := ""; ; {
		var page Page
		b := f.brokers[int(f.next.Add(1))%len(f.brokers)]
		if status := b.Call(t, "GET", "/v1/boards?limit=2&cursor="+url.QueryEscape(cursor), "", &page); status != http.StatusOK {
			t.Fatalf("GET /v1/boards: %d", status)
		}
		for _, c := range page.Boards {
			names = append(names, c.Board)
		}
		if cursor = page.Cursor; cursor == "" {
			return names
		}
	}
}

// awaitList makes rounds until the list has the boards.
func (f *fixture) awaitList(t *testing.T, why string, want ...string) {
	t.Helper()
	await.True(t, why, func() bool {
		for _, b := range f.boards {
			if err := b.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return slices.Equal(f.list(t), want)
	})
}

var listedBoards = map[string]Board{"golf": {Order: "asc"}, "level-*": {}, "monthly": {Season: "@monthly", Mode: Set, Keep: 1}}

// TestList checks which boards are in the list, and what it says about them.
func TestList(t *testing.T) {
	eachStore(t, Options{Boards: listedBoards}, func(t *testing.T, f *fixture) {
		f.awaitList(t, "no board has a player")
		for i, board := range []string{"level-2", "monthly", "golf", "level-1"} {
			f.submit(t, Score{Board: board, Player: "amy", Score: int64(i)})
		}
		f.submit(t, Score{Board: "golf", Player: "bob", Score: -5})
		f.awaitList(t, "each board with a player is listed", "golf", "level-1", "level-2", "monthly")

		page, err := f.any().List(t.Context(), "", 0)
		if err != nil || len(page.Boards) != 4 || page.Cursor != "" {
			t.Fatalf("%+v, %v", page, err)
		}
		golf, monthly := page.Boards[0], page.Boards[3]
		if golf.First == nil || *golf.First != (Entry{1, "bob", -5}) {
			t.Errorf("the first one of golf is %+v", golf.First)
		}
		if golf.First = nil; golf != (Card{Board: "golf", Order: "asc", Mode: Best, Count: 2}) {
			t.Errorf("golf is %+v", golf)
		}
		if now := time.Now(); monthly.Season == "" || monthly.Ends < now.UnixMilli() || monthly.Mode != Set || monthly.Count != 1 {
			t.Errorf("monthly is %+v", monthly)
		}

		if _, err := f.any().Remove(t.Context(), "level-1", "amy", ""); err != nil {
			t.Fatal(err)
		}
		f.awaitList(t, "a board without players is not listed", "golf", "level-2", "monthly")
		_, err = f.any().List(t.Context(), "x", 0)
		wantCode(t, "a bad cursor", err, wire.BadRequest)
		f.brokers[0].Refused(t, "bad_request", "GET", "/v1/boards?limit=1001", "")
	})
}

// TestListSeasons checks that a board is in the list until the last season that is kept has ended.
func TestListSeasons(t *testing.T) {
	eachStore(t, Options{Boards: listedBoards}, func(t *testing.T, f *fixture) {
		f.submit(t, Score{Board: "monthly", Player: "amy", Score: 1})
		now, err := f.any().storeTime(t.Context(), "monthly")
		if err != nil {
			t.Fatal(err)
		}
		rules, err := f.any().opts.board("monthly")
		if err != nil {
			t.Fatal(err)
		}
		for seasons, want := range []bool{true, true, false} {
			if has, err := f.any().hasPlayers(t.Context(), "monthly", now); has != want || err != nil {
				t.Errorf("%d seasons later: it has players: %v, %v", seasons, has, err)
			}
			now = time.UnixMilli(rules.seasonAt(now).end)
		}
	})
}

// TestListIsRestored loses the cards of boards, as a failover may do, and has cards that are wrong.
func TestListIsRestored(t *testing.T) {
	eachStore(t, Options{Boards: listedBoards}, func(t *testing.T, f *fixture) {
		if !f.store.Shared {
			return
		}
		ctx := t.Context()
		f.submit(t, Score{Board: "golf", Player: "amy", Score: 1})
		f.submit(t, Score{Board: "monthly", Player: "amy", Score: 1})
		f.submit(t, Score{Board: "level-1", Player: "amy", Score: 1})
		if _, err := f.any().Remove(ctx, "level-1", "amy", ""); err != nil {
			t.Fatal(err)
		}
		f.awaitList(t, "the boards are listed", "golf", "monthly")
		stores := CheckOptions{Store: NewRedis(f.store.Pipe, f.store.Prefix), States: f.store.Queue.(*queue.Redis), Index: f.index}
		problems := func() (list []string) {
			found, err := CheckList(stores).Find(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range found {
				list = append(list, d.Subject+": "+d.Problem)
			}
			return list
		}
		if got := problems(); len(got) > 0 {
			t.Errorf("a true list: found %q", got)
		}
		if n, err := Restore(stores).Do(ctx); n != 0 || err != nil {
			t.Errorf("a true list: noted %d boards, %v", n, err)
		}

		for key, err := range f.store.Pipe.Keys(ctx, f.store.Prefix+"ix_*") {
			if err == nil {
				err = f.store.Redis.Del(ctx, key).Err()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := f.index.Put(ctx, index.Card{ID: "level-9", Version: 1, Lists: map[string]int64{allList: 0}}); err != nil {
			t.Fatal(err)
		}
		const want = "[board:golf: it has players, but is not in the list of boards" +
			" board:monthly: it has players, but is not in the list of boards board:level-9: it is in the list of boards, but has no players]"
		if got := fmt.Sprint(problems()); got != want {
			t.Errorf("found %s, want %s", got, want)
		}
		if n, err := Restore(stores).Do(ctx); n != 2 || err != nil {
			t.Errorf("noted %d boards, %v", n, err)
		}
		if err := f.index.Schedule(ctx, 0, "level-9"); err != nil { // as the sweep does in time
			t.Fatal(err)
		}
		f.awaitList(t, "the list is true again", "golf", "monthly")
	})
}

// TestOffsetRange compares the bounds of the parameter offset with maxOffset.
func TestOffsetRange(t *testing.T) {
	if f, _ := reflect.TypeFor[topRequest]().FieldByName("Offset"); f.Tag.Get("range") != fmt.Sprintf("0,%d", maxOffset) {
		t.Errorf("offset has the range %s, want 0 to %d", f.Tag.Get("range"), maxOffset)
	}
}
