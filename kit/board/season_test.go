package board

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"switchboard/internal/wire"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse("2006-01-02 15:04 MST", text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// TestSeasonAt checks the bounds of seasons, over a change to summer time, too.
func TestSeasonAt(t *testing.T) {
	const layout = "2006-01-02 15:04"
	for _, c := range []struct{ expression, at, start, end, forget string }{
		{"0 0 * * 1", "2026-03-04 12:30 UTC", "2026-03-02 00:00", "2026-03-09 00:00", "2026-03-23 00:00"},
		{"0 0 * * 1", "2026-03-09 00:00 UTC", "2026-03-09 00:00", "2026-03-16 00:00", "2026-03-30 00:00"},
		{"@monthly", "2026-02-28 23:59 UTC", "2026-02-01 00:00", "2026-03-01 00:00", "2026-05-01 00:00"},
		{"0 0 29 2 *", "2026-02-28 23:59 UTC", "2024-02-29 00:00", "2028-02-29 00:00", "2036-02-29 00:00"},
		{"* 0 * * *", "2026-02-28 23:00 UTC", "2026-02-28 00:59", "2026-03-01 00:00", "2026-03-01 00:02"},
		{"CRON_TZ=Europe/Berlin 0 0 * * *", "2026-03-29 12:00 UTC", "2026-03-28 23:00", "2026-03-29 22:00", "2026-03-31 22:00"},
	} {
		b, err := Board{Season: c.expression, Keep: 2}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		s := b.seasonAt(at(t, c.at))
		format := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(layout) }
		if format(s.start) != c.start || format(s.end) != c.end || format(s.forget) != c.forget {
			t.Errorf("%s at %s: %s to %s, forgotten at %s", c.expression, c.at, format(s.start), format(s.end), format(s.forget))
		}
	}
}

// TestSeasonsAreAPartition checks that each time has one season, and each season one id.
func TestSeasonsAreAPartition(t *testing.T) {
	for _, expression := range []string{"0 0 * * 1", "*/7 3-5 * * *", "@monthly", "30 2 * 3,10 0", "CRON_TZ=America/New_York 30 1,2 * * *"} {
		b, err := Board{Season: expression}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			now := at(t, "2020-01-01 00:00 UTC").Add(time.Duration(rand.Int64N(int64(10 * 365 * 24 * time.Hour))))
			s := b.seasonAt(now)
			if now.UnixMilli() < s.start || now.UnixMilli() >= s.end {
				t.Fatalf("%s: %v is not in %+v", expression, now, s)
			}
			if first, last := b.seasonAt(time.UnixMilli(s.start)), b.seasonAt(time.UnixMilli(s.end-1)); first != s || last != s {
				t.Fatalf("%s: %+v begins with %+v and ends with %+v", expression, s, first, last)
			}
			if next := b.seasonAt(time.UnixMilli(s.end)); next.start != s.end {
				t.Fatalf("%s: %+v is followed by %+v", expression, s, next)
			}
			if found, err := b.find(s.id, now.AddDate(1, 0, 0)); found != s || err != nil {
				t.Fatalf("%s: %s is %+v, %v; want %+v", expression, s.id, found, err, s)
			}
			if before, err := b.find("previous", now); before.end != s.start || err != nil {
				t.Fatalf("%s: %+v is before %+v, %v", expression, before, s, err)
			}
		}
	}
}

func TestFindErrors(t *testing.T) {
	weekly, err := Board{Season: "@weekly"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := Board{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	now := at(t, "2026-03-04 12:30 UTC")
	for id, code := range map[string]wire.ErrorCode{"last": wire.BadRequest, "20260302T000000Z": wire.NotFound} {
		_, err := weekly.find(id, now)
		wantCode(t, id, err, code)
	}
	_, err = plain.find("previous", now)
	wantCode(t, "a board without seasons", err, wire.BadRequest)
}

// TestOptions checks the options that are refused.
func TestOptions(t *testing.T) {
	for want, b := range map[string]Board{
		`order: "up"`:               {Order: "up"},
		`mode: "sum"`:               {Mode: "sum"},
		"entries: 9 is not":         {Entries: 9},
		"keep: 101 is not":          {Keep: 101},
		`read: "all"`:               {Read: "all"},
		"season: expected exactly":  {Season: "0 0"},
		"has no fixed times":        {Season: "@every 1h"},
		`"0 0 30 2 *" never comes`:  {Season: "0 0 30 2 *"},
		"unknown time zone Nowhere": {Season: "CRON_TZ=Nowhere 0 0 * * *"},
	} {
		if want == "unknown time zone Nowhere" {
			want = "provided bad location"
		}
		_, err := NewBoards(nil, Options{Store: NewMemory(), Boards: map[string]Board{"x": b}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", b, err, want)
		}
	}
	for want, o := range map[string]Options{
		"Store is required":           {},
		"OperationTTL: 1ms is not":    {Store: NewMemory(), OperationTTL: time.Millisecond},
		`"a b" is not the name of`:    {Store: NewMemory(), Boards: map[string]Board{"a b": {}}},
		`"a*b*" is not the name of a`: {Store: NewMemory(), Boards: map[string]Board{"a*b*": {}}},
	} {
		if _, err := NewBoards(nil, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

// TestBoardNames checks which pattern decides.
func TestBoardNames(t *testing.T) {
	o, err := Options{Store: NewMemory(), Boards: map[string]Board{
		"level-*": {Entries: 11}, "level-1*": {Entries: 12}, "level-10": {Entries: 13}, "chess": {Entries: 14},
	}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"level-2": 11, "level-11": 12, "level-10": 13, "chess": 14} {
		if b, err := o.board(name); err != nil || b.Entries != want {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
	for name, code := range map[string]wire.ErrorCode{"chess2": wire.NotFound, "": wire.BadRequest, "{x}": wire.BadRequest} {
		_, err := o.board(name)
		wantCode(t, name, err, code)
	}
}

// BenchmarkSeasonAt finds a season without Board.recent.
func BenchmarkSeasonAt(b *testing.B) {
	for _, expression := range []string{"0 * * * *", "0 0 * * 1", "@monthly", "@yearly"} {
		b.Run(expression, func(b *testing.B) {
			board, err := Board{Season: expression}.withDefaults()
			if err != nil {
				b.Fatal(err)
			}
			now := time.Now()
			for b.Loop() {
				board.seasonAt(now)
			}
		})
	}
}
