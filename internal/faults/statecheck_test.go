package main

import (
	"slices"
	"testing"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// TestGhostOwners checks the verdicts about clients that die with their broker.
func TestGhostOwners(t *testing.T) {
	field := memberField("ghost")
	for name, tc := range map[string]struct {
		record    func(s *stateTest)
		want      int
		shortWant int // in a short run
	}{
		"not dead":  {func(s *stateTest) {}, 0, 0},
		"not away":  {func(s *stateTest) { s.ownersDie(s.now) }, 1, 1},
		"away late": {func(s *stateTest) { s.ownersDie(s.now); s.tick(20 * time.Second); s.die(field) }, 1, 1},
		"away and gone": {func(s *stateTest) {
			s.ownersDie(s.now)
			s.die(field)
			s.entry(state.Entry{Gone: map[string]string{field: state.Left}})
		}, 0, 0},
		"not gone": {func(s *stateTest) { s.ownersDie(s.now); s.die(field) }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStateTest()
			s.ownerStarts("ghost", "room")
			s.held.Fields[field] = state.Shown{ID: 1}
			tc.record(s)
			for beat, want := range map[time.Duration]int{fullBeat: tc.want, shortBeat: tc.shortWant} {
				c := &stateCheck{journal: s.stateJournal, found: evidence{}}
				if got := c.finish(times{beat}).counts.GhostFields; got != want {
					t.Errorf("beat %s: %d ghost fields, want %d: %q", beat, got, want, c.found)
				}
			}
		})
	}
}

func (s *stateTest) die(field string) {
	s.entry(state.Entry{Away: map[string]int64{field: s.now.Add(stateGrace).UnixMilli()}})
}

// TestCompareFields checks the verdicts about what a follower holds in the end.
func TestCompareFields(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	past, future := now.UnixMilli()-1, now.UnixMilli()+1
	stored := map[string]state.Shown{"x": {ID: 5, Value: []byte("1")}}
	for name, tc := range map[string]struct {
		held             map[string]state.Shown
		diverged, ghosts int
	}{
		"equal":         {map[string]state.Shown{"x": {ID: 5, Value: []byte("1")}}, 0, 0},
		"missing":       {nil, 1, 0},
		"another id":    {map[string]state.Shown{"x": {ID: 4, Value: []byte("1")}}, 1, 0},
		"another value": {map[string]state.Shown{"x": {ID: 5, Value: []byte("2")}}, 1, 0},
		"another end":   {map[string]state.Shown{"x": {ID: 5, Value: []byte("1"), Until: future}}, 1, 0},
		"away":          {map[string]state.Shown{"x": {ID: 5, Value: []byte("1"), Away: true}}, 1, 0},
		"one more":      {map[string]state.Shown{"x": stored["x"], "y": {ID: 6, Until: future}}, 1, 0},
		"a ghost":       {map[string]state.Shown{"x": stored["x"], "y": {ID: 6, Until: past}}, 0, 1},
	} {
		var d stateDifferences
		d.compare("a", tc.held, stored, now)
		if len(d.diverged) != tc.diverged || len(d.ghosts) != tc.ghosts {
			t.Errorf("%s: diverged %q, ghosts %q", name, d.diverged, d.ghosts)
		}
	}
}

// TestJudgedTimes checks that a refusal is not judged while Redis loses its writes, and that the
// update itself always is.
func TestJudgedTimes(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		s := newStateTest()
		tb := &bed{
			scenario: scenario{forgets: forgets}, times: times{fullBeat}, journal: newJournal(), state: s.stateJournal,
		}
		unknown := stateRefusal{code: wire.Conflict, fields: shown("doc/0", &state.Shown{ID: 7, Value: []byte("1")})}
		tb.journal.faultStarts(s.tick(time.Minute))
		s.refuse(ifID("doc/0", 0), unknown) // during the fault
		s.faultEnds(s.tick(time.Minute))
		s.refuse(ifID("doc/0", 0), unknown)
		c := tb.newStateCheck()
		c.checkChannel("room", s.log)
		want := 2
		if forgets {
			want = 1
		}
		if c.counts.WrongConflicts != want || c.counts.Refusals != 2 {
			t.Errorf("forgets %t: %+v, want %d wrong conflicts", forgets, c.counts, want)
		}
	}
}

// TestLateTimes checks the times of expiries.
func TestLateTimes(t *testing.T) {
	s := newStateTest()
	for _, late := range []time.Duration{100, 300, 200} {
		s.now = time.UnixMilli(s.lease("x", 2*time.Second)).Add(late*time.Millisecond - time.Second)
		s.entry(state.Entry{Gone: map[string]string{"x": state.Expired}})
	}
	got, _ := s.check(times{fullBeat})
	if got.Expiries != 3 || got.LateP50 != 220*time.Millisecond || got.LateMax != 320*time.Millisecond {
		t.Errorf("%d expiries, p50 %s, max %s", got.Expiries, got.LateP50, got.LateMax)
	}
}

// TestStateFaultMakesTheRowRed checks that a fault leads to a red row with evidence.
func TestStateFaultMakesTheRowRed(t *testing.T) {
	s := newStateTest()
	s.unseen = true
	s.set("x", "1")
	tb := &bed{journal: newJournal(), presence: newPresenceJournal(), state: s.stateJournal}
	tb.states = tb.newStateCheck()
	tb.states.checkChannel("room", s.log)
	r := tb.row(nil, time.Second)
	if !slices.Contains(r.Red, "1 missed changes") || len(r.Evidence["missed change"]) != 1 {
		t.Errorf("%v, %v", r.Red, r.Evidence)
	}
}
