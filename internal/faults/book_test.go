package main

import (
	"slices"
	"testing"
	"time"
)

// page is a book in which one client, "a", follows stream "s" in channel "room".
type page struct {
	*book
	now time.Time
}

func newPage() *page {
	p := &page{book: newBook(), now: time.Now()}
	p.confirm("a", p.now)
	p.tick()
	p.begin(p.now)
	return p
}

func (p *page) tick() time.Time {
	p.now = p.now.Add(time.Millisecond)
	return p.now
}

// pushed acknowledges messages of the stream; number n has id 10 n.
func (p *page) pushed(ns ...int) {
	for _, n := range ns {
		p.tries(n)
		p.accept(push{
			item: item{"s", n}, queue: "room", to: []string{"a"}, ids: map[string]int64{"a": int64(10 * n)},
			first: p.now, acked: p.tick(),
		})
	}
}

func (p *page) tries(n int) { p.attempt(item{"s", n}, p.tick()) }

func (p *page) arrive(ns ...int) {
	for _, n := range ns {
		p.message("a", "room", int64(10*n), item{"s", n}, p.tick())
	}
}

func (p *page) told(after, id int64) {
	p.book.gap("a", gap{queue: "room", after: after, id: id, at: p.tick()})
}

func TestEachColumnCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		story func(p *page)
		want  counts
	}{
		"all is well": {
			func(p *page) { p.pushed(1, 2, 3); p.arrive(1, 2, 3) },
			counts{Acknowledged: 3, Delivered: 3},
		},
		"lost in silence": {
			func(p *page) { p.pushed(1, 2, 3); p.arrive(1, 3) },
			counts{Acknowledged: 3, Delivered: 2, Lost: 1, Undeclared: 1},
		},
		"lost behind a gap": {
			func(p *page) { p.pushed(1, 2, 3); p.arrive(1); p.told(10, 20); p.arrive(3) },
			counts{Acknowledged: 3, Delivered: 2, Lost: 1, Gaps: 1},
		},
		"lost behind a gap that ends too early": {
			func(p *page) { p.pushed(1, 2, 3, 4); p.arrive(1); p.told(10, 20); p.arrive(4) },
			counts{Acknowledged: 4, Delivered: 2, Lost: 2, Undeclared: 1, Gaps: 1},
		},
		"lost behind a gap of another queue": {
			func(p *page) {
				p.pushed(1, 2)
				p.arrive(1)
				p.book.gap("a", gap{queue: "", after: 10, id: 20, at: p.tick()})
			},
			counts{Acknowledged: 2, Delivered: 1, Lost: 1, Undeclared: 1, Gaps: 1},
		},
		"lost behind a reset": {
			func(p *page) { p.pushed(1, 2, 3); p.arrive(1, 2); p.told(20, 10) },
			counts{Acknowledged: 3, Delivered: 2, Lost: 1, Gaps: 1},
		},
		"a reset declares nothing that is acknowledged later": {
			func(p *page) { p.pushed(1, 2); p.arrive(1, 2); p.told(20, 10); p.pushed(3) },
			counts{Acknowledged: 3, Delivered: 2, Lost: 1, Undeclared: 1, Gaps: 1},
		},
		"a reset declares nothing below its position": {
			func(p *page) { p.pushed(1, 2, 3); p.arrive(2, 3); p.told(30, 20) },
			counts{Acknowledged: 3, Delivered: 2, Lost: 1, Undeclared: 1, Gaps: 1},
		},
		"twice": {
			func(p *page) { p.pushed(1, 2); p.arrive(1, 2, 2) },
			counts{Acknowledged: 2, Delivered: 2, Duplicated: 1},
		},
		"twice, the second time under a new id": {
			func(p *page) {
				p.pushed(1)
				p.arrive(1)
				p.message("a", "room", 99, item{"s", 1}, p.tick())
			},
			counts{Acknowledged: 1, Delivered: 1, Again: 1},
		},
		"a refused attempt arrives, then the accepted one": {
			func(p *page) {
				p.tries(1)
				p.message("a", "room", 5, item{"s", 1}, p.tick())
				p.pushed(1)
				p.arrive(1, 1)
			},
			counts{Acknowledged: 1, Delivered: 1, Again: 1, Duplicated: 1},
		},
		"ids go back": {
			func(p *page) {
				p.pushed(1, 2)
				p.message("a", "room", 20, item{"s", 1}, p.tick())
				p.message("a", "room", 10, item{"s", 2}, p.tick())
			},
			counts{Acknowledged: 2, Delivered: 2, Disorder: 1, Strange: 2},
		},
		"numbers go back, over two queues": {
			func(p *page) {
				p.pushed(1, 2)
				p.arrive(2)
				p.message("a", "hall", 10, item{"s", 1}, p.tick())
			},
			counts{Acknowledged: 2, Delivered: 2, Disorder: 1},
		},
		"ids go back after a gap that is told late": {
			func(p *page) {
				p.pushed(1, 3, 4)
				p.arrive(1, 3)
				p.told(0, 10)
				p.message("a", "room", 20, item{"s", 4}, p.tick())
			},
			counts{Acknowledged: 3, Delivered: 3, Disorder: 1, Strange: 1, Gaps: 1},
		},
		"ids go back after a reset": {
			func(p *page) {
				p.pushed(1, 2)
				p.arrive(1, 2)
				p.told(20, 5)
				p.tries(3)
				p.accept(push{item: item{"s", 3}, queue: "room", to: []string{"a"}, ids: map[string]int64{"a": 7}, first: p.now, acked: p.tick()})
				p.message("a", "room", 7, item{"s", 3}, p.tick())
			},
			counts{Acknowledged: 3, Delivered: 3, Gaps: 1},
		},
		"never acknowledged": {
			func(p *page) { p.tries(1); p.arrive(1) },
			counts{Unacknowledged: 1},
		},
		"never pushed": {
			func(p *page) { p.arrive(1) },
			counts{Unacknowledged: 1, Strange: 1},
		},
		"under another id": {
			func(p *page) { p.pushed(1); p.message("a", "room", 11, item{"s", 1}, p.tick()) },
			counts{Acknowledged: 1, Delivered: 1, Strange: 1},
		},
		"to a client that joins during the push": {
			func(p *page) {
				p.tries(1)
				first := p.now
				p.confirm("b", p.tick())
				p.accept(push{item: item{"s", 1}, queue: "room", to: []string{"b"}, ids: map[string]int64{"b": 10}, first: first, acked: p.tick()})
			},
			counts{},
		},
		"to a user, without one of the devices": {
			func(p *page) {
				p.tries(1)
				p.accept(push{item: item{"s", 1}, to: []string{"a"}, ids: map[string]int64{}, first: p.now, acked: p.tick()})
			},
			counts{Unnamed: 1},
		},
		"refused": {
			func(p *page) { p.refuse("503"); p.refuse("timeout"); p.pushed(1); p.arrive(1) },
			counts{Acknowledged: 1, Delivered: 1, Refused: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage()
			tc.story(p)
			got, found := p.count()
			if got != tc.want {
				t.Errorf("got  %+v\nwant %+v\n%v", got, tc.want, found)
			}
		})
	}
}

func TestPauses(t *testing.T) {
	p := newPage()
	p.confirm("b", p.now)
	p.pushed(1)
	p.arrive(1)
	p.now = p.now.Add(time.Second)
	p.inject(p.now)
	fault := p.now
	p.message("b", "room", 10, item{"s", 1}, p.tick()) // pushed before the fault
	p.now = fault.Add(3 * time.Second)
	p.pushed(2)
	p.arrive(2)
	p.arrive(3)
	took := p.now.Add(-time.Millisecond).Sub(fault) // the second message after the fault does not count
	p.end(p.tick())
	got := p.pauses()
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
	kept, durable, forgot := tolerance{}, tolerance{forgets: true}, tolerance{forgets: true, loses: true}
	for name, tc := range map[string]struct {
		row   row
		redIn []tolerance
	}{
		"clean":           {row{}, nil},
		"information":     {row{counts: counts{Unacknowledged: 3, Refused: 4, Gaps: 2}}, nil},
		"lost":            {row{counts: counts{Lost: 1}}, []tolerance{kept, durable}},
		"undeclared":      {row{counts: counts{Undeclared: 1}}, []tolerance{kept, durable, forgot}},
		"duplicated":      {row{counts: counts{Duplicated: 1}}, []tolerance{kept, durable, forgot}},
		"again":           {row{counts: counts{Again: 1}}, []tolerance{kept}},
		"disorder":        {row{counts: counts{Disorder: 1}}, []tolerance{kept, durable, forgot}},
		"strange":         {row{counts: counts{Strange: 1}}, []tolerance{kept, durable, forgot}},
		"unnamed":         {row{counts: counts{Unnamed: 1}}, []tolerance{kept, durable}},
		"ghosts":          {row{Ghosts: 1}, []tolerance{kept, durable, forgot}},
		"told twice":      {row{ToldTwice: 1}, []tolerance{kept, durable, forgot}},
		"missing":         {row{Missing: 1}, []tolerance{kept, durable, forgot}},
		"phantoms":        {row{Phantoms: 1}, []tolerance{kept, durable, forgot}},
		"never recovered": {row{pauses: pauses{Unrecovered: 1}}, []tolerance{kept, durable, forgot}},
		"broken":          {row{Failure: "the broker did not start"}, []tolerance{kept, durable, forgot}},
	} {
		for _, tolerated := range []tolerance{kept, durable, forgot} {
			got, want := len(tc.row.objections(tolerated)) > 0, slices.Contains(tc.redIn, tolerated)
			if got != want {
				t.Errorf("%s under %+v: red %t, want %t", name, tolerated, got, want)
			}
		}
	}
}

// TestLossMakesTheRowRed goes the way from an arrival that is missing to the verdict.
func TestLossMakesTheRowRed(t *testing.T) {
	p := newPage()
	p.inject(p.now)
	p.pushed(1, 2)
	p.arrive(1)
	s := &stage{book: p.book, roster: newAttendance()}
	r := s.row(nil, time.Second)
	if r.verdict() != "RED" || len(r.Evidence["undeclared"]) != 1 {
		t.Errorf("%s: %v, %v", r.verdict(), r.Red, r.Evidence)
	}
	p.arrive(2)
	if r := s.row(nil, time.Second); r.verdict() != "ok" {
		t.Errorf("%s: %v", r.verdict(), r.Red)
	}
}
