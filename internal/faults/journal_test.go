package main

import (
	"slices"
	"testing"
	"time"
)

// journalTest is a journal with one client, "a", that receives stream "s" in channel "room".
type journalTest struct {
	*journal
	now time.Time
}

func newJournalTest() *journalTest {
	p := &journalTest{journal: newJournal(), now: time.Now()}
	p.clientReady("a", rawTCP, p.now)
	p.tick()
	p.loadStarts(p.now)
	return p
}

func (j *journalTest) tick() time.Time {
	j.now = j.now.Add(time.Millisecond)
	return j.now
}

// pushed records accepted messages of the stream. Number n has id 10n.
func (j *journalTest) pushed(ns ...int) {
	for _, n := range ns {
		j.try(n)
		j.accept(acceptedPush{
			item: item{"s", n}, queue: "room", to: []string{"a"}, ids: map[string]int64{"a": int64(10 * n)},
			firstTry: j.now, acceptedAt: j.tick(),
		})
	}
}

func (j *journalTest) try(n int) { j.attempt(item{"s", n}, j.tick()) }

func (j *journalTest) arrive(ns ...int) {
	for _, n := range ns {
		j.message("a", "room", int64(10*n), item{"s", n}, j.tick())
	}
}

func (j *journalTest) gap(after, id int64) {
	j.journal.gap("a", gap{queue: "room", after: after, id: id, at: j.tick()})
}

func TestCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		record func(p *journalTest)
		want   counts
	}{
		"all is well": {
			func(p *journalTest) { p.pushed(1, 2, 3); p.arrive(1, 2, 3) },
			counts{Acknowledged: 3, Delivered: 3},
		},
		"lost without a gap": {
			func(p *journalTest) { p.pushed(1, 2, 3); p.arrive(1, 3) },
			counts{Acknowledged: 3, Delivered: 2, Lost: 1, Undeclared: 1},
		},
		"lost with a gap": {
			func(p *journalTest) { p.pushed(1, 2, 3); p.arrive(1); p.gap(10, 20); p.arrive(3) },
			counts{Acknowledged: 3, Delivered: 2, Lost: 1, Gaps: 1},
		},
		"lost, gap ends too early": {
			func(p *journalTest) { p.pushed(1, 2, 3, 4); p.arrive(1); p.gap(10, 20); p.arrive(4) },
			counts{Acknowledged: 4, Delivered: 2, Lost: 2, Undeclared: 1, Gaps: 1},
		},
		"lost, gap of another queue": {
			func(p *journalTest) {
				p.pushed(1, 2)
				p.arrive(1)
				p.journal.gap("a", gap{queue: "", after: 10, id: 20, at: p.tick()})
			},
			counts{Acknowledged: 2, Delivered: 1, Lost: 1, Undeclared: 1, Gaps: 1},
		},
		"lost with a reset": {
			func(p *journalTest) { p.pushed(1, 2, 3); p.arrive(1, 2); p.gap(20, 10) },
			counts{Acknowledged: 3, Delivered: 2, Lost: 1, Gaps: 1},
		},
		"a reset declares nothing that is acknowledged later": {
			func(p *journalTest) { p.pushed(1, 2); p.arrive(1, 2); p.gap(20, 10); p.pushed(3) },
			counts{Acknowledged: 3, Delivered: 2, Lost: 1, Undeclared: 1, Gaps: 1},
		},
		"a reset declares nothing below its position": {
			func(p *journalTest) { p.pushed(1, 2, 3); p.arrive(2, 3); p.gap(30, 20) },
			counts{Acknowledged: 3, Delivered: 2, Lost: 1, Undeclared: 1, Gaps: 1},
		},
		"duplicate": {
			func(p *journalTest) { p.pushed(1, 2); p.arrive(1, 2, 2) },
			counts{Acknowledged: 2, Delivered: 2, Duplicated: 1},
		},
		"duplicate under a new id": {
			func(p *journalTest) {
				p.pushed(1)
				p.arrive(1)
				p.message("a", "room", 99, item{"s", 1}, p.tick())
			},
			counts{Acknowledged: 1, Delivered: 1, Again: 1},
		},
		"a refused attempt arrives, then the accepted one": {
			func(p *journalTest) {
				p.try(1)
				p.message("a", "room", 5, item{"s", 1}, p.tick())
				p.pushed(1)
				p.arrive(1, 1)
			},
			counts{Acknowledged: 1, Delivered: 1, Again: 1, Duplicated: 1},
		},
		"ids decrease": {
			func(p *journalTest) {
				p.pushed(1, 2)
				p.message("a", "room", 20, item{"s", 1}, p.tick())
				p.message("a", "room", 10, item{"s", 2}, p.tick())
			},
			counts{Acknowledged: 2, Delivered: 2, Disorder: 1, Strange: 2},
		},
		"numbers decrease across two queues": {
			func(p *journalTest) {
				p.pushed(1, 2)
				p.arrive(2)
				p.message("a", "shared", 10, item{"s", 1}, p.tick())
			},
			counts{Acknowledged: 2, Delivered: 2, Disorder: 1},
		},
		"ids decrease after a late gap": {
			func(p *journalTest) {
				p.pushed(1, 3, 4)
				p.arrive(1, 3)
				p.gap(0, 10)
				p.message("a", "room", 20, item{"s", 4}, p.tick())
			},
			counts{Acknowledged: 3, Delivered: 3, Disorder: 1, Strange: 1, Gaps: 1},
		},
		"ids decrease after a reset": {
			func(p *journalTest) {
				p.pushed(1, 2)
				p.arrive(1, 2)
				p.gap(20, 5)
				p.try(3)
				p.accept(acceptedPush{item: item{"s", 3}, queue: "room", to: []string{"a"}, ids: map[string]int64{"a": 7}, firstTry: p.now, acceptedAt: p.tick()})
				p.message("a", "room", 7, item{"s", 3}, p.tick())
			},
			counts{Acknowledged: 3, Delivered: 3, Gaps: 1},
		},
		"never acknowledged": {
			func(p *journalTest) { p.try(1); p.arrive(1) },
			counts{Unacknowledged: 1},
		},
		"never pushed": {
			func(p *journalTest) { p.arrive(1) },
			counts{Unacknowledged: 1, Strange: 1},
		},
		"under another id": {
			func(p *journalTest) { p.pushed(1); p.message("a", "room", 11, item{"s", 1}, p.tick()) },
			counts{Acknowledged: 1, Delivered: 1, Strange: 1},
		},
		"to a client that joins during the push": {
			func(p *journalTest) {
				p.try(1)
				first := p.now
				p.clientReady("b", sse, p.tick())
				p.accept(acceptedPush{item: item{"s", 1}, queue: "room", to: []string{"b"}, ids: map[string]int64{"b": 10}, firstTry: first, acceptedAt: p.tick()})
			},
			counts{},
		},
		"to a user, without one of the devices": {
			func(p *journalTest) {
				p.try(1)
				p.accept(acceptedPush{item: item{"s", 1}, to: []string{"a"}, ids: map[string]int64{}, firstTry: p.now, acceptedAt: p.tick()})
			},
			counts{Unnamed: 1},
		},
		"refused": {
			func(p *journalTest) { p.refuse("503"); p.refuse("timeout"); p.pushed(1); p.arrive(1) },
			counts{Acknowledged: 1, Delivered: 1, Refused: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newJournalTest()
			tc.record(p)
			got, found := p.count()
			if got != tc.want {
				t.Errorf("got  %+v\nwant %+v\n%v", got, tc.want, found)
			}
		})
	}
}

func TestOutages(t *testing.T) {
	p := newJournalTest()
	p.clientReady("b", rawTCP, p.now)
	p.pushed(1)
	p.arrive(1)
	p.now = p.now.Add(time.Second)
	p.faultStarts(p.now)
	fault := p.now
	p.message("b", "room", 10, item{"s", 1}, p.tick()) // pushed before the fault
	p.now = fault.Add(3 * time.Second)
	p.pushed(2)
	p.arrive(2)
	p.arrive(3)
	took := p.now.Add(-time.Millisecond).Sub(fault) // the second message after the fault does not count
	p.loadEnds(p.tick())
	got := p.outages()
	if got.RecoverMax != took || got.RecoverP50 != took || got.Unrecovered != 1 {
		t.Errorf("recovered %+v, want %s and one client that never did", got, took)
	}
	if got.WithoutPush < 4*time.Second || got.WithoutPush > 4*time.Second+10*time.Millisecond {
		t.Errorf("%s without a push, want 4 s", got.WithoutPush)
	}
	if got.Silence < 4*time.Second {
		t.Errorf("the longest silence was %s, want 4 s", got.Silence)
	}
}

func TestRowIsRed(t *testing.T) {
	strict, forgets, loses := tolerance{}, tolerance{forgets: true}, tolerance{forgets: true, loses: true}
	for name, tc := range map[string]struct {
		row   row
		redIn []tolerance
	}{
		"clean":             {row{}, nil},
		"information":       {row{counts: counts{Unacknowledged: 3, Refused: 4, Gaps: 2}}, nil},
		"lost":              {row{counts: counts{Lost: 1}}, []tolerance{strict, forgets}},
		"undeclared":        {row{counts: counts{Undeclared: 1}}, []tolerance{strict, forgets, loses}},
		"duplicated":        {row{counts: counts{Duplicated: 1}}, []tolerance{strict, forgets, loses}},
		"again":             {row{counts: counts{Again: 1}}, []tolerance{strict}},
		"disorder":          {row{counts: counts{Disorder: 1}}, []tolerance{strict, forgets, loses}},
		"strange":           {row{counts: counts{Strange: 1}}, []tolerance{strict, forgets, loses}},
		"unnamed":           {row{counts: counts{Unnamed: 1}}, []tolerance{strict, forgets}},
		"ghosts":            {row{Ghosts: 1}, []tolerance{strict, forgets, loses}},
		"repeated":          {row{RepeatedEvents: 1}, []tolerance{strict, forgets, loses}},
		"missing":           {row{Missing: 1}, []tolerance{strict, forgets, loses}},
		"phantoms":          {row{Phantoms: 1}, []tolerance{strict, forgets, loses}},
		"lost change":       {row{stateCounts: stateCounts{LostChanges: 1}}, []tolerance{strict}},
		"lost durable":      {row{stateCounts: stateCounts{LostDurable: 1}}, []tolerance{strict, forgets, loses}},
		"ended change":      {row{stateCounts: stateCounts{EndedEarly: 1}}, []tolerance{strict, forgets, loses}},
		"missed change":     {row{stateCounts: stateCounts{MissedChanges: 1}}, []tolerance{strict, forgets, loses}},
		"diverged":          {row{stateCounts: stateCounts{Diverged: 1}}, []tolerance{strict, forgets, loses}},
		"oversold":          {row{stateCounts: stateCounts{Oversold: 1}}, []tolerance{strict, forgets, loses}},
		"ghost field":       {row{stateCounts: stateCounts{GhostFields: 1}}, []tolerance{strict, forgets, loses}},
		"wrong conflict":    {row{stateCounts: stateCounts{WrongConflicts: 1}}, []tolerance{strict, forgets, loses}},
		"late expiry":       {row{stateCounts: stateCounts{Late: 1}}, []tolerance{strict, forgets, loses}},
		"state information": {row{stateCounts: stateCounts{Updates: 9, Refusals: 3, Expiries: 2}}, nil},
		"unreported":        {row{eraseCounts: eraseCounts{Unreported: 1}}, []tolerance{strict, forgets, loses}},
		"lost erasure":      {row{eraseCounts: eraseCounts{LostErasures: 1}}, []tolerance{strict, forgets}},
		"revealed":          {row{eraseCounts: eraseCounts{Revealed: 1}}, []tolerance{strict, forgets}},
		"missed by reader":  {row{eraseCounts: eraseCounts{MissedByReader: 1}}, []tolerance{strict, forgets, loses}},
		"repeated report":   {row{eraseCounts: eraseCounts{RepeatedReport: 1}}, []tolerance{strict}},
		"no recovery":       {row{outages: outages{Unrecovered: 1}}, []tolerance{strict, forgets, loses}},
		"broken":            {row{Failure: "the broker did not start"}, []tolerance{strict, forgets, loses}},
	} {
		for _, tolerated := range []tolerance{strict, forgets, loses} {
			got, want := len(tc.row.redReasons(tolerated)) > 0, slices.Contains(tc.redIn, tolerated)
			if got != want {
				t.Errorf("%s under %+v: red %t, want %t", name, tolerated, got, want)
			}
		}
	}
}

// TestLossMakesTheRowRed checks that a missing arrival leads to a red row.
func TestLossMakesTheRowRed(t *testing.T) {
	p := newJournalTest()
	p.faultStarts(p.now)
	p.pushed(1, 2)
	p.arrive(1)
	s := &bed{journal: p.journal, presence: newPresenceJournal()}
	r := s.row(nil, time.Second)
	if r.verdict() != "RED" || len(r.Evidence["undeclared"]) != 1 {
		t.Errorf("%s: %v, %v", r.verdict(), r.Red, r.Evidence)
	}
	p.arrive(2)
	if r := s.row(nil, time.Second); r.verdict() != "ok" {
		t.Errorf("%s: %v", r.verdict(), r.Red)
	}
}

// TestCountKind checks that the counts of a kind of listener leave out other clients.
func TestCountKind(t *testing.T) {
	p := newJournalTest()
	p.clientReady("b", sse, p.now)
	for n := 1; n <= 3; n++ {
		p.try(n)
		id := int64(10 * n)
		p.accept(acceptedPush{
			item: item{"s", n}, queue: "room", to: []string{"a", "b"}, ids: map[string]int64{"a": id, "b": id},
			firstTry: p.tick(), acceptedAt: p.tick(),
		})
	}
	for range 2 {
		p.message("b", "room", 10, item{"s", 1}, p.tick())
	}
	p.journal.gap("b", gap{queue: "room", after: 10, id: 20, at: p.tick()})
	p.clientResumed(sse)
	want := kindCounts{Acknowledged: 3, Delivered: 1, Lost: 2, Undeclared: 1, Duplicated: 1, Gaps: 1, Resumed: 1}
	if got := p.countKind(sse); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if all, _ := p.count(); all.Acknowledged != 6 || all.Lost != 5 {
		t.Errorf("all clients: %+v", all)
	}
}
