package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/internal/testbed"
	"switchboard/internal/wire"
)

// roomWatcher is a watcher of one channel that receives made-up events.
type roomWatcher struct {
	*watcher
	now time.Time
}

func newRoomWatcher() *roomWatcher {
	w := &roomWatcher{newWatcher("w", &testbed.Broker{Program: testbed.Program{Name: "b0"}}, []string{"room"}, newPresenceJournal()), time.Now()}
	w.journal.reset(w.key(), &memberView{})
	return w
}

func (w *roomWatcher) key() viewKey { return viewKey{"w", "room"} }

// readPage applies the only page that the watcher reads first.
func (w *roomWatcher) readPage(names ...string) {
	view := w.journal.view(w.key())
	w.checkPage("", "", names...)
	w.journal.applyPages(view, w.key(), names)
}

// checkPage applies a page that the watcher reads for a check.
func (w *roomWatcher) checkPage(after, last string, names ...string) {
	w.journal.pageShown(w.key(), after, last, names)
}

// settle lets the marker enter, as the next event.
func (w *roomWatcher) settle() {
	s := w.journal.newSettlement(true)
	w.apply(wire.Event{Type: wire.TypeJoin, Channel: "room", User: markerName, Client: markerName + "/" + markerName})
	w.journal.settle(s)
}

// applyEvents applies joins (`+x`) and leaves (`-x`) of clients.
func (w *roomWatcher) applyEvents(events ...string) {
	for _, e := range events {
		kind := map[byte]string{'+': wire.TypeJoin, '-': wire.TypeLeave}[e[0]]
		w.apply(wire.Event{Type: kind, Channel: "room", User: "u", Client: "u/" + e[1:]})
	}
}

func (w *roomWatcher) apply(ev wire.Event) (reread bool) {
	w.now = w.now.Add(time.Second) // later than all settlements so far
	return w.handleEvent(viewKey{"w", ev.Channel}, ev, w.now)
}

func TestPresenceJournal(t *testing.T) {
	members := func(clients ...string) (list []wire.Member) {
		for _, c := range clients {
			list = append(list, wire.Member{User: "u", Client: "u/" + c})
		}
		return list
	}
	for name, tc := range map[string]struct {
		apply    func(w *roomWatcher)
		want     []string // nil for not known
		repeated int
	}{
		"joins and leaves":                {func(w *roomWatcher) { w.readPage("u/a"); w.applyEvents("+b", "-a", "+a", "-b") }, []string{"u/a"}, 0},
		"no page read":                    {func(w *roomWatcher) { w.applyEvents("+b") }, nil, 0},
		"repeated join":                   {func(w *roomWatcher) { w.readPage(); w.applyEvents("+a", "+a") }, []string{"u/a"}, 1},
		"repeated leave":                  {func(w *roomWatcher) { w.readPage("u/a"); w.applyEvents("-a", "-a") }, []string{}, 1},
		"page newer than events":          {func(w *roomWatcher) { w.readPage("u/a"); w.applyEvents("+a", "-b") }, []string{"u/a"}, 0},
		"page newer than events, settled": {func(w *roomWatcher) { w.readPage("u/a"); w.settle(); w.applyEvents("+a", "-b") }, []string{"marker/marker", "u/a"}, 2},
		"event before the marker's": {func(w *roomWatcher) {
			w.readPage("u/a")
			s := w.journal.newSettlement(true)
			if waiting := w.journal.settle(s); len(waiting) != 1 {
				t.Error("the view does not wait for the event about the marker")
			}
			w.applyEvents("+a")
		}, []string{"u/a"}, 0},
		"pages after the marker": {func(w *roomWatcher) {
			s := w.journal.newSettlement(true)
			w.readPage("u/a", "marker/marker")
			w.journal.settle(s)
			w.applyEvents("+a")
		}, []string{"marker/marker", "u/a"}, 0},
		"missed changes while the marker enters": {func(w *roomWatcher) {
			w.readPage()
			s := w.journal.newSettlement(true)
			w.apply(wire.Event{Type: wire.TypePresence, Channel: "room"})
			w.readPage("u/a", "marker/marker")
			if waiting := w.journal.settle(s); len(waiting) != 0 || w.journal.isSettled() {
				t.Errorf("after a reset: %v wait", waiting)
			}
			w.applyEvents("+a")
		}, []string{"marker/marker", "u/a"}, 0},
		"missed changes while pages are read": {func(w *roomWatcher) {
			view := w.journal.view(w.key())
			w.apply(wire.Event{Type: wire.TypePresence, Channel: "room"})
			w.journal.applyPages(view, w.key(), []string{"u/a"})
		}, nil, 0},
		"page of a check before its events": {func(w *roomWatcher) {
			w.readPage("u/a", "u/b", "u/c")
			w.settle()
			w.checkPage("", "u/b", "u/b")   // without u/a, which has left and comes back before the next event
			w.checkPage("u/b", "", "u/d")   // with u/d, which leaves before the next event, and without u/c
			w.applyEvents("+a", "-d", "-c") // and u/b has not changed
			w.applyEvents("+b", "+a", "-d") // repeats
		}, []string{"marker/marker", "u/a", "u/b"}, 3},
		"page older than events": {func(w *roomWatcher) { w.applyEvents("+b", "-a"); w.readPage("u/a") }, []string{"u/b"}, 0},
		"own join": {func(w *roomWatcher) {
			w.readPage()
			w.apply(wire.Event{Type: wire.TypeJoin, Channel: "room", User: "w", Client: "w/w"})
		}, []string{}, 1},
		"other channel": {func(w *roomWatcher) {
			w.readPage()
			w.apply(wire.Event{Type: wire.TypeJoin, Channel: "bar", User: "u", Client: "u/a"})
		}, []string{}, 1},
		"batch": {func(w *roomWatcher) {
			w.readPage("u/a", "u/b")
			w.apply(wire.Event{Type: wire.TypePresence, Channel: "room", Joined: members("c"), Left: members("a")})
		}, []string{"u/b", "u/c"}, 0},
		"repeated batch": {func(w *roomWatcher) {
			w.readPage("u/a", "u/b")
			w.applyEvents("-a", "+c")
			w.apply(wire.Event{Type: wire.TypePresence, Channel: "room", Joined: members("c"), Left: members("a")})
		}, []string{"u/b", "u/c"}, 2},
		"complete list": {func(w *roomWatcher) {
			w.readPage("u/a", "u/b")
			w.apply(wire.Event{Type: wire.TypePresence, Channel: "room", Clients: &[]wire.Member{{User: "u", Client: "u/c"}, {User: "w", Client: "w/w"}}})
			w.applyEvents("-c")
		}, []string{}, 0},
		"only a change notice": {func(w *roomWatcher) {
			w.readPage("u/a", "u/b")
			if !w.apply(wire.Event{Type: wire.TypePresence, Channel: "room"}) {
				t.Error("the watcher does not read the members again")
			}
		}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRoomWatcher()
			tc.apply(w)
			got, known := w.journal.members(w.key())
			if known != (tc.want != nil) || !slices.Equal(got, tc.want) {
				t.Errorf("members %v, known %t, want %v", got, known, tc.want)
			}
			if _, repeated := w.journal.totals(); repeated != tc.repeated || len(w.journal.evidence["repeated event"]) != repeated {
				t.Errorf("%d repeated events, want %d: %v", repeated, tc.repeated, w.journal.evidence)
			}
		})
	}
}

func TestLastLeave(t *testing.T) {
	w := newRoomWatcher()
	w.readPage("u/a", "u/b", "u/c")
	names := []string{"u/a", "u/b"}
	w.applyEvents("-a")
	if _, gone := w.journal.lastLeave(w.key(), names); gone {
		t.Error("one of two clients has left, but both are reported")
	}
	w.applyEvents("-b", "-c")
	if last, gone := w.journal.lastLeave(w.key(), names); !gone || last != w.now.Add(-time.Second) {
		t.Errorf("left %t, the last leave %v before the end", gone, w.now.Sub(last))
	}
}

func TestPresenceCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		got, want         []string
		missing, phantoms int
	}{
		"equal":     {[]string{"b", "a"}, []string{"a", "b"}, 0, 0},
		"missing":   {[]string{"b"}, []string{"a", "b"}, 1, 0},
		"phantom":   {[]string{"a", "c", "b"}, []string{"a", "b"}, 0, 1},
		"double":    {[]string{"a", "a"}, []string{"a"}, 0, 1},
		"different": {[]string{"b"}, []string{"a"}, 1, 1},
		"empty":     {nil, nil, 0, 0},
	} {
		var c presenceCheck
		c.compareNames("answer", tc.got, tc.want)
		if c.missing != tc.missing || c.phantoms != tc.phantoms || len(c.details) != c.mismatches() {
			t.Errorf("%s: %+v", name, c)
		}
	}
	var c presenceCheck
	c.compareAnswer("answer", presenceAnswer{names: []string{"u/a", "u/b"}, count: 3, users: 0}, []string{"u/a", "u/b"})
	if c.missing != 1 || c.phantoms != 1 {
		t.Errorf("one client too many and no user: %+v", c)
	}
}

func TestKillSeriesIsRed(t *testing.T) {
	plan := killPlan{rounds: 1, victims: 2, times: times{time.Second}, limits: killLimits{time.Second, 2 * time.Second, 3 * time.Second}}
	for name, tc := range map[string]struct {
		kills    []killTimes
		repeated bool
		err      error
		red      int
	}{
		"good":             {[]killTimes{{time.Second, time.Second, 3 * time.Second}, {1, 2 * time.Second, 3}}, false, nil, 0},
		"over the limits":  {[]killTimes{{1, 1, 1}, {2 * time.Second, 3 * time.Second, 4 * time.Second}}, false, nil, 3},
		"one kill missing": {[]killTimes{{1, 1, 1}}, false, nil, 1},
		"no kill":          {nil, false, nil, 1},
		"repeated event":   {[]killTimes{{1, 1, 1}, {1, 1, 1}}, true, nil, 1},
		"failed start":     {[]killTimes{{1, 1, 1}, {1, 1, 1}}, false, errors.New("broken"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRoomWatcher()
			if tc.repeated {
				w.applyEvents("+a", "+a")
			}
			k := newKillReport(plan)
			for _, one := range tc.kills {
				k.add(one)
			}
			k.finish(&bed{presence: w.journal}, tc.err, time.Second)
			if len(k.Red) != tc.red || tc.repeated != (len(k.Evidence["repeated event"]) > 0) {
				t.Errorf("red: %q, want %d reasons; %v", k.Red, tc.red, k.Evidence)
			}
			page := (&ledger{Kills: k}).markdown()
			if !strings.Contains(page, "## Presence after kill -9") || strings.Contains(page, "**RED**") != (tc.red > 0) {
				t.Error(page)
			}
		})
	}
}
