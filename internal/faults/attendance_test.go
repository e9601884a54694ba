package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/internal/wire"
)

// lobby is what one watcher of one room is told.
type lobby struct {
	*watcher
	now time.Time
}

func newLobby() *lobby {
	l := &lobby{newWatcher("w", &instance{name: "b0"}, []string{"room"}, newAttendance()), time.Now()}
	l.book.open(l.roll(), &present{})
	return l
}

func (l *lobby) roll() roll { return roll{"w", "room"} }

// reads is the page that the watcher reads at first.
func (l *lobby) reads(names ...string) { l.book.page(l.roll(), names) }

// hears is told of clients by events: `+x` has come, `-x` has gone.
func (l *lobby) hears(events ...string) (again bool) {
	for _, e := range events {
		kind := map[byte]string{'+': wire.TypeJoin, '-': wire.TypeLeave}[e[0]]
		l.says(wire.Event{Type: kind, Channel: "room", User: "u", Client: "u/" + e[1:]})
	}
	return false
}

func (l *lobby) says(ev wire.Event) (again bool) {
	l.now = l.now.Add(time.Millisecond)
	return l.told(roll{"w", ev.Channel}, ev, l.now)
}

func TestAttendance(t *testing.T) {
	members := func(clients ...string) (list []wire.Member) {
		for _, c := range clients {
			list = append(list, wire.Member{User: "u", Client: "u/" + c})
		}
		return list
	}
	for name, tc := range map[string]struct {
		story func(l *lobby)
		want  []string // nil for not known
		twice int
	}{
		"comes and goes":                 {func(l *lobby) { l.reads("u/a"); l.hears("+b", "-a", "+a", "-b") }, []string{"u/a"}, 0},
		"nothing read":                   {func(l *lobby) { l.hears("+b") }, nil, 0},
		"comes twice":                    {func(l *lobby) { l.reads(); l.hears("+a", "+a") }, []string{"u/a"}, 1},
		"goes twice":                     {func(l *lobby) { l.reads("u/a"); l.hears("-a", "-a") }, []string{}, 1},
		"the page was ahead":             {func(l *lobby) { l.reads("u/a"); l.hears("+a", "-b") }, []string{"u/a"}, 0},
		"the page was ahead, long ago":   {func(l *lobby) { l.reads("u/a"); l.book.firm(); l.hears("+a", "-b") }, []string{"u/a"}, 2},
		"the page is behind what it was": {func(l *lobby) { l.hears("+b", "-a"); l.reads("u/a") }, []string{"u/b"}, 0},
		"itself": {func(l *lobby) {
			l.reads()
			l.says(wire.Event{Type: wire.TypeJoin, Channel: "room", User: "w", Client: "w/w"})
		}, []string{}, 1},
		"of another room": {func(l *lobby) {
			l.reads()
			l.says(wire.Event{Type: wire.TypeJoin, Channel: "bar", User: "u", Client: "u/a"})
		}, []string{}, 1},
		"told together": {func(l *lobby) {
			l.reads("u/a", "u/b")
			l.says(wire.Event{Type: wire.TypePresence, Channel: "room", Joined: members("c"), Left: members("a")})
		}, []string{"u/b", "u/c"}, 0},
		"told together, and once more": {func(l *lobby) {
			l.reads("u/a", "u/b")
			l.hears("-a", "+c")
			l.says(wire.Event{Type: wire.TypePresence, Channel: "room", Joined: members("c"), Left: members("a")})
		}, []string{"u/b", "u/c"}, 2},
		"told all": {func(l *lobby) {
			l.reads("u/a", "u/b")
			l.says(wire.Event{Type: wire.TypePresence, Channel: "room", Clients: &[]wire.Member{{User: "u", Client: "u/c"}, {User: "w", Client: "w/w"}}})
			l.hears("-c")
		}, []string{}, 0},
		"told how many": {func(l *lobby) {
			l.reads("u/a", "u/b")
			if !l.says(wire.Event{Type: wire.TypePresence, Channel: "room"}) {
				t.Error("the watcher does not read who is there")
			}
		}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLobby()
			tc.story(l)
			got, known := l.book.believed(l.roll())
			if known != (tc.want != nil) || !slices.Equal(got, tc.want) {
				t.Errorf("believes %v, %t, want %v", got, known, tc.want)
			}
			if _, twice := l.book.counted(); twice != tc.twice || len(l.book.evidence["told twice"]) != twice {
				t.Errorf("told twice %d times, want %d: %v", twice, tc.twice, l.book.evidence)
			}
		})
	}
}

func TestLastHeard(t *testing.T) {
	l := newLobby()
	l.reads("u/a", "u/b", "u/c")
	names := []string{"u/a", "u/b"}
	l.hears("-a")
	if _, gone := l.book.lastHeard(l.roll(), names); gone {
		t.Error("one of two has gone, and both are said to have")
	}
	l.hears("-b", "-c")
	if last, gone := l.book.lastHeard(l.roll(), names); !gone || last != l.now.Add(-time.Millisecond) {
		t.Errorf("gone %t, the last %v before the end", gone, l.now.Sub(last))
	}
}

func TestCensus(t *testing.T) {
	for name, tc := range map[string]struct {
		got, want         []string
		missing, phantoms int
	}{
		"true":    {[]string{"b", "a"}, []string{"a", "b"}, 0, 0},
		"missing": {[]string{"b"}, []string{"a", "b"}, 1, 0},
		"phantom": {[]string{"a", "c", "b"}, []string{"a", "b"}, 0, 1},
		"twice":   {[]string{"a", "a"}, []string{"a"}, 0, 1},
		"other":   {[]string{"b"}, []string{"a"}, 1, 1},
		"nobody":  {nil, nil, 0, 0},
	} {
		var c census
		c.compare("they say", tc.got, tc.want)
		if c.missing != tc.missing || c.phantoms != tc.phantoms || len(c.what) != c.wrong() {
			t.Errorf("%s: %+v", name, c)
		}
	}
	var c census
	c.crowd("they say", crowd{names: []string{"u/a", "u/b"}, count: 3, users: 0}, []string{"u/a", "u/b"})
	if c.missing != 1 || c.phantoms != 1 {
		t.Errorf("one too many and no user: %+v", c)
	}
}

func TestKillSeriesIsRed(t *testing.T) {
	plan := series{rounds: 1, victims: 2, times: times{time.Second}, bars: bars{time.Second, 2 * time.Second, 3 * time.Second}}
	for name, tc := range map[string]struct {
		kills []kill
		twice bool
		err   error
		red   int
	}{
		"good":             {[]kill{{time.Second, time.Second, 3 * time.Second}, {1, 2 * time.Second, 3}}, false, nil, 0},
		"too late":         {[]kill{{1, 1, 1}, {2 * time.Second, 3 * time.Second, 4 * time.Second}}, false, nil, 3},
		"not all were":     {[]kill{{1, 1, 1}}, false, nil, 1},
		"none":             {nil, false, nil, 1},
		"told twice":       {[]kill{{1, 1, 1}, {1, 1, 1}}, true, nil, 1},
		"it did not start": {[]kill{{1, 1, 1}, {1, 1, 1}}, false, errors.New("broken"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLobby()
			if tc.twice {
				l.hears("+a", "+a")
			}
			k := newKillSeries(plan)
			for _, one := range tc.kills {
				k.add(one)
			}
			k.conclude(&stage{roster: l.book}, tc.err, time.Second)
			if len(k.Red) != tc.red || tc.twice != (len(k.Evidence["told twice"]) > 0) {
				t.Errorf("red: %q, want %d reasons; %v", k.Red, tc.red, k.Evidence)
			}
			page := (&ledger{Kills: k}).markdown()
			if !strings.Contains(page, "## Presence after kill -9") || strings.Contains(page, "**RED**") != (tc.red > 0) {
				t.Error(page)
			}
		})
	}
}
