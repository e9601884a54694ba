package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"switchboard/client"
	clientboard "switchboard/client/board"
	"switchboard/internal/await"
	"switchboard/internal/wire"
)

// TestTies checks that players with one score are ordered by arrival, with the highest and the
// lowest score first, and that the arrival is that at the score.
func TestTies(t *testing.T) {
	boards := map[string]Board{"desc": {Mode: Set}, "asc": {Mode: Set, Order: "asc"}}
	eachStore(t, Options{Boards: boards}, func(t *testing.T, f *fixture) {
		for name := range boards {
			var want []string
			for i := range 40 {
				player := fmt.Sprintf("p%02d", 40-i)
				if r := f.submit(t, Score{Board: name, Player: player, Score: 1<<53 - 1}); r.Rank != i+1 {
					t.Fatalf("%s: player %d has rank %d", name, i+1, r.Rank)
				}
				want = append(want, player)
			}
			for _, player := range want[:5] { // leave and come back, so that they are last
				f.submit(t, Score{Board: name, Player: player, Score: 1<<53 - 2})
				f.submit(t, Score{Board: name, Player: player, Score: 1<<53 - 1})
			}
			f.submit(t, Score{Board: name, Player: want[7], Score: 1<<53 - 1}) // no change
			want = append(want[5:], want[:5]...)
			view, err := f.any().Top(t.Context(), name, "", 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range view.Entries {
				got = append(got, e.Player)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	})
}

// TestRepeatedOperation checks that an operation that arrives many times at once adds once, and
// that an operation of another player is another one.
func TestRepeatedOperation(t *testing.T) {
	eachStore(t, Options{Boards: map[string]Board{"sum": {Mode: Add}}}, func(t *testing.T, f *fixture) {
		results := make([]Result, 30)
		var group sync.WaitGroup
		for i := range results {
			group.Go(func() {
				results[i] = f.submit(t, Score{Board: "sum", Player: fmt.Sprint("p", i%3), Score: 7, Operation: "round"})
			})
		}
		group.Wait()
		first := map[string]int{}
		for _, r := range results {
			if *r.Score != 7 || r.Previous != nil {
				t.Errorf("%s", toJSON(r))
			}
			if !r.Repeated {
				first[r.Player]++
			}
		}
		if fmt.Sprint(first) != "map[p0:1 p1:1 p2:1]" {
			t.Errorf("first results: %v", first)
		}
		if r := f.submit(t, Score{Board: "sum", Player: "p0", Score: -10, Operation: "2"}); *r.Score != -3 || *r.Previous != 7 || r.Rank != 3 {
			t.Errorf("%s", toJSON(r))
		}
		if r := f.submit(t, Score{Board: "sum", Player: "p0", Score: 99, Operation: "2"}); *r.Score != -3 || !r.Repeated {
			t.Errorf("%s", toJSON(r))
		}
	})
}

// TestErrors checks the codes of errors, and that a refused change leaves no trace.
func TestErrors(t *testing.T) {
	eachStore(t, Options{Boards: map[string]Board{"sum": {Mode: Add}, "week": {Season: "@weekly"}}}, func(t *testing.T, f *fixture) {
		f.submit(t, Score{Board: "sum", Player: "amy", Score: 1<<53 - 1, Operation: "1"})
		top, id := f.top(t, "sum")
		for _, c := range []struct {
			name string
			Score
			code wire.ErrorCode
		}{
			{"an unknown board", Score{Board: "x", Player: "amy"}, wire.NotFound},
			{"an addition without an id", Score{Board: "sum", Player: "amy"}, wire.BadRequest},
			{"a bad id", Score{Board: "sum", Player: "amy", Operation: "a b"}, wire.BadRequest},
			{"a bad mode", Score{Board: "sum", Player: "amy", Mode: remove}, wire.BadRequest},
			{"a bad player", Score{Board: "sum", Player: "a b", Mode: Set}, wire.BadRequest},
			{"a score of 2^53", Score{Board: "sum", Player: "amy", Mode: Set, Score: 1 << 53}, wire.BadRequest},
			{"a sum of 2^53", Score{Board: "sum", Player: "amy", Score: 1, Operation: "2"}, wire.OutOfRange},
			{"an old season", Score{Board: "week", Player: "amy", Season: "previous"}, wire.Expired},
			{"no season", Score{Board: "week", Player: "amy", Season: "20260302T000000Z"}, wire.NotFound},
		} {
			_, err := f.any().Submit(t.Context(), c.Score)
			wantCode(t, c.name, err, c.code)
		}
		if after, afterID := f.top(t, "sum"); after != top || afterID != id {
			t.Errorf("refused changes changed the field to %s", after)
		}
		if r := f.submit(t, Score{Board: "sum", Player: "amy", Score: -1, Operation: "2"}); *r.Score != 1<<53-2 || r.Repeated {
			t.Errorf("the id of a refused change: %s", toJSON(r))
		}
		if _, err := f.any().Top(t.Context(), "sum", "", 0, 1001); err == nil {
			t.Error("a limit of 1001: no error")
		}
		if f.store.Shared {
			_, err := f.any().Submit(t.Context(), Score{Board: "sum", Player: "bob", Score: 5, Operation: "3", Durable: true})
			if err == nil {
				t.Error("durable without a replica: no error")
			}
			if r := f.submit(t, Score{Board: "sum", Player: "bob", Score: 5, Operation: "3"}); *r.Score != 5 || !r.Repeated {
				t.Errorf("a repeat after it: %s", toJSON(r))
			}
		}
	})
}

// everySecond is a board whose seasons last one second.
func everySecond(t *testing.T) map[string]Board {
	schedule, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse("* * * * * *")
	if err != nil {
		t.Fatal(err)
	}
	schedule.(*cron.SpecSchedule).Location = time.UTC
	return map[string]Board{"fast": {Keep: 50, schedule: schedule}}
}

// TestSeasonEnds checks seasons of one second: subscribers see the end of the field top, scores
// count in the season of the store's clock, and past seasons stay as they were.
func TestSeasonEnds(t *testing.T) {
	eachStore(t, Options{Boards: everySecond(t)}, func(t *testing.T, f *fixture) {
		gone := make(chan string, 100)
		c := f.brokers[0].Connect(t, "eve", func(o *client.Options) {
			o.OnMessage = func(m client.Message) {
				if m.Changes != nil && m.Changes.Gone[topField] != "" {
					gone <- string(m.Changes.Gone[topField])
				}
			}
		})
		if _, err := c.Subscribe(t.Context(), clientboard.Channel("fast"), client.SubscribeOptions{State: true}); err != nil {
			t.Fatal(err)
		}
		amy := f.submit(t, Score{Board: "fast", Player: "amy", Score: 5})
		if why := <-gone; why != "expired" {
			t.Errorf("the field has ended: %s", why)
		}
		slow := *f.boards[0]
		slow.opts.now = func() time.Time { return time.Now().Add(-time.Hour) } // a broker whose clock is wrong
		bob, err := slow.Submit(t.Context(), Score{Board: "fast", Player: "bob", Score: 3})
		if err != nil || bob.Season <= amy.Season || bob.Rank != 1 || bob.Count != 1 {
			t.Fatalf("the next season: %s, %v", toJSON(bob), err)
		}
		_, err = f.any().Submit(t.Context(), Score{Board: "fast", Player: "cat", Score: 9, Season: amy.Season})
		wantCode(t, "a submission to the past season", err, wire.Expired)
		view, err := f.any().Top(t.Context(), "fast", amy.Season, 0, 0)
		if err != nil || view.Count != 1 || view.Entries[0].Player != "amy" || view.Ends == 0 {
			t.Errorf("the past season: %s, %v", toJSON(view), err)
		}
		<-gone
		r, err := f.any().Remove(t.Context(), "fast", "amy", amy.Season)
		if err != nil || *r.Previous != 5 || r.Count != 0 {
			t.Errorf("a removal from a past season: %s, %v", toJSON(r), err)
		}
		if top, _ := f.top(t, "fast"); top != "" {
			t.Errorf("the removal has set the field to %s", top)
		}
	})
}

// TestRepeatNamesItsSeason checks that a repeat after the turn of a season answers the first
// result, with the season in which it counted, also through a broker whose clock is wrong.
func TestRepeatNamesItsSeason(t *testing.T) {
	eachStore(t, Options{Boards: everySecond(t)}, func(t *testing.T, f *fixture) {
		s := Score{Board: "fast", Player: "amy", Score: 5, Operation: "game-1"}
		want := f.submit(t, s)
		await.True(t, "the season has turned", func() bool {
			return f.submit(t, Score{Board: "fast", Player: "bob", Score: 1}).Season > want.Season
		})
		late := *f.boards[0]
		late.opts.now = func() time.Time { return time.Now().Add(-time.Hour) }
		want.Repeated = true
		for name, boards := range map[string]*Boards{"a broker": f.any(), "a broker with a late clock": &late} {
			if got, err := boards.Submit(t.Context(), s); err != nil || toJSON(got) != toJSON(want) {
				t.Errorf("%s: the repeat answers %s, %v; want %s", name, toJSON(got), err, toJSON(want))
			}
		}
	})
}

// TestParse: the replies of change.lua, with those that an earlier release has stored.
func TestParse(t *testing.T) {
	five, three := int64(5), int64(3)
	for reply, want := range map[string]Result{
		"5 3 1 2 20260601T000000Z":       {Season: "20260601T000000Z", Score: &five, Previous: &three, Rank: 1, Count: 2},
		"5 3 1 2 20260601T000000Z again": {Season: "20260601T000000Z", Score: &five, Previous: &three, Rank: 1, Count: 2, Repeated: true},
		"- - 0 9 -":                      {Season: "asked", Count: 9},
		"5 - 1 1 again":                  {Season: "asked", Score: &five, Rank: 1, Count: 1, Repeated: true},
	} {
		got := Result{Season: "asked"}
		if err := got.parse(reply); err != nil || toJSON(got) != toJSON(want) {
			t.Errorf("%s: %s, %v; want %s", reply, toJSON(got), err, toJSON(want))
		}
	}
	if err := new(Result).parse("1 2 3"); err == nil {
		t.Error("a short reply: no error")
	}
}

// TestPastSeasonsEnd checks that the keys of a season end after the seasons that are kept.
func TestPastSeasonsEnd(t *testing.T) {
	boards := everySecond(t)
	b := boards["fast"]
	b.Keep = 1
	boards["fast"] = b
	eachStore(t, Options{Boards: boards}, func(t *testing.T, f *fixture) {
		first := f.submit(t, Score{Board: "fast", Player: "amy", Score: 5})
		f.submit(t, Score{Board: "fast", Player: "amy", Score: 6, Season: ""})
		await.True(t, "the season is forgotten", func() bool {
			view, err := f.any().Top(t.Context(), "fast", first.Season, 0, 0)
			return err == nil && view.Count == 0
		})
		if !f.store.Shared {
			return
		}
		await.True(t, "no keys are left", func() bool {
			k := keys{f.store.Prefix}
			n, err := f.store.Redis.Exists(t.Context(), k.players("fast", season{id: first.Season})).Result()
			return err == nil && n == 0
		})
	})
}

// TestChannel follows the field top through a client, from another broker, while many submit.
func TestChannel(t *testing.T) {
	eachStore(t, Options{Boards: map[string]Board{"chess": {Read: "anyone"}}}, func(t *testing.T, f *fixture) {
		c := f.brokers[0].Connect(t, "eve", nil)
		if _, err := c.Subscribe(t.Context(), clientboard.Channel("chess"), client.SubscribeOptions{State: true}); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for n := range 40 {
					f.submit(t, Score{Board: "chess", Player: fmt.Sprint("p", (i+n)%20), Score: int64(n * (i + 1))})
				}
			})
		}
		group.Wait()
		view, err := clientboard.Boards{Client: c}.Top(t.Context(), clientboard.Request{Board: "chess"})
		if err != nil || len(view.Entries) != 10 || view.Count != 20 {
			t.Fatalf("%s, %v", toJSON(view), err)
		}
		for i := range view.Entries {
			view.Entries[i].Rank = 0
		}
		want := toJSON(clientboard.Top{Entries: view.Entries})
		await.True(t, "the client holds the top ten", func() bool {
			s, _ := c.Fields(clientboard.Channel("chess"))
			var got clientboard.Top
			return json.Unmarshal(s.Fields[clientboard.TopField].Value, &got) == nil && toJSON(got) == want
		})
	})
}

// TestMethods checks what clients may do.
func TestMethods(t *testing.T) {
	boards := map[string]Board{"open": {Submit: true, Read: "anyone", Mode: Add}, "users": {}, "closed": {Read: "nobody"}}
	eachStore(t, Options{Boards: boards}, func(t *testing.T, f *fixture) {
		amy := clientboard.Boards{Client: f.brokers[0].Connect(t, "amy", nil)}
		guest := clientboard.Boards{Client: f.brokers[len(f.brokers)-1].Connect(t, "", nil)}
		code := func(err error) string {
			if e, ok := errors.AsType[*client.Error](err); ok {
				return string(e.Code)
			}
			return fmt.Sprint(err)
		}
		submit := func(b clientboard.Boards, board string) string {
			r, err := b.Submit(t.Context(), clientboard.Submission{Board: board, Score: 4, Operation: "1"})
			if err != nil {
				return code(err)
			}
			return fmt.Sprintf("%s %d %t", r.Player, *r.Score, r.Repeated)
		}
		for i, want := range []string{"amy 4 false", "amy 4 true"} {
			if got := submit(amy, "open"); got != want {
				t.Errorf("submission %d: %s, want %s", i, got, want)
			}
		}
		for board, want := range map[string]string{"users": "forbidden", "none": "not_found"} {
			if got := submit(amy, board); got != want {
				t.Errorf("submit to %s: %s, want %s", board, got, want)
			}
		}
		if got := submit(guest, "open"); got != "forbidden" {
			t.Errorf("a guest submits: %s", got)
		}
		for board, want := range map[string][2]string{
			"open": {"<nil>", "<nil>"}, "users": {"<nil>", "forbidden"}, "closed": {"forbidden", "forbidden"}, "none": {"not_found", "not_found"},
		} {
			for i, b := range []clientboard.Boards{amy, guest} {
				_, topErr := b.Top(t.Context(), clientboard.Request{Board: board})
				_, subscribeErr := b.Subscribe(t.Context(), clientboard.Channel(board), client.SubscribeOptions{State: true})
				got := code(topErr) + " " + code(subscribeErr)
				if got != want[i]+" "+want[i] && !(want[i] == "not_found" && strings.HasPrefix(got, "not_found")) {
					t.Errorf("client %d reads %s: %s, want %s", i, board, got, want[i])
				}
			}
		}
		s, err := amy.Rank(t.Context(), clientboard.Request{Board: "open"})
		around, aroundErr := guest.Around(t.Context(), clientboard.Request{Board: "open", Player: "amy"})
		if err != nil || aroundErr != nil || s.Rank != 1 || s.Score != 4 || !slices.Equal(around.Entries, []clientboard.Entry{s.Entry}) {
			t.Errorf("%+v, %v; %+v, %v", s, err, around, aroundErr)
		}
		if _, err := guest.Rank(t.Context(), clientboard.Request{Board: "open"}); code(err) != "bad_request" {
			t.Errorf("the rank of a guest: %v", err)
		}
	})
}

// TestCalls checks the HTTP calls.
func TestCalls(t *testing.T) {
	eachStore(t, Options{Boards: map[string]Board{"chess": {}}}, func(t *testing.T, f *fixture) {
		i := f.brokers[len(f.brokers)-1]
		for n, player := range []string{"amy", "bob", "cat"} {
			var r Result
			status := i.Call(t, "POST", "/v1/boards/chess/scores", fmt.Sprintf(`{"player":%q,"score":%d}`, player, 100-n), &r)
			if status != 200 || r.Rank != n+1 {
				t.Fatalf("%d %+v", status, r)
			}
		}
		var view View
		i.Call(t, "GET", "/v1/boards/chess?offset=1&limit=1", "", &view)
		if got := toJSON(view); got != `{"board":"chess","count":3,"entries":[{"rank":2,"player":"bob","score":99}],"cursor":"2"}` {
			t.Error(got)
		}
		view = View{}
		i.Call(t, "GET", "/v1/boards/chess/players/cat/around?limit=1", "", &view)
		if len(view.Entries) != 2 {
			t.Error(toJSON(view))
		}
		var s Standing
		i.Call(t, "GET", "/v1/boards/chess/players/cat", "", &s)
		if got := toJSON(s); got != `{"board":"chess","count":3,"rank":3,"player":"cat","score":98}` {
			t.Error(got)
		}
		var r Result
		i.Call(t, "DELETE", "/v1/boards/chess/players/bob", "", &r)
		if got := toJSON(r); got != `{"board":"chess","player":"bob","score":null,"previous":99,"count":2}` {
			t.Error(got)
		}
		for call, want := range map[string]string{
			"GET /v1/boards/none":                      "404 not_found",
			"GET /v1/boards/chess?limit=0":             "400 bad_request",
			"GET /v1/boards/chess?season=previous":     "400 bad_request",
			"GET /v1/boards/chess/players/bob":         "404 not_found",
			"GET /v1/boards/chess/players/bob/around":  "404 not_found",
			"POST /v1/boards/chess/scores":             "400 bad_request",
			"DELETE /v1/boards/chess/players/%20?a=b":  "400 bad_request",
			"GET /v1/boards/chess/players/cat/around?": "200 ",
		} {
			method, path, _ := strings.Cut(call, " ")
			var answer struct{ Error struct{ Code string } }
			status := i.Call(t, method, path, "{", &answer)
			if got := fmt.Sprint(status, " ", answer.Error.Code); got != want {
				t.Errorf("%s: %s, want %s", call, got, want)
			}
		}
	})
}
