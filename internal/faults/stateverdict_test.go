package main

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"switchboard/internal/replay"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// stateTest is a journal with one follower of the channel "room", "a", and the log of the channel.
type stateTest struct {
	*stateJournal
	now    time.Time
	log    []replay.Entry
	held   *state.Map // the fields of "a"
	unseen bool       // "a" does not receive the next changes
	unkept bool       // the store loses the next changes
}

func newStateTest() *stateTest {
	s := &stateTest{stateJournal: newStateJournal(), now: time.UnixMilli(1_800_000_000_000), held: state.NewMap(0)}
	s.connected("a", "room", "server-1", s.tick(time.Second))
	s.pages("a", "room", 1, nil, s.now)
	s.tick(time.Second)
	return s
}

func (s *stateTest) tick(d time.Duration) time.Time {
	s.now = s.now.Add(d)
	return s.now
}

// entry appends an entry to the log, and the follower receives it.
func (s *stateTest) entry(e state.Entry) (id int64) {
	id = s.tick(time.Second).Sub(replay.Time(0)).Milliseconds() * 4096
	if !s.unkept {
		s.log = append(s.log, replay.Entry{ID: id, Changes: &e})
	}
	if s.unseen {
		return id
	}
	s.held.Apply(id, &e)
	away, gone := slices.Collect(maps.Keys(e.Away)), slices.Collect(maps.Keys(e.Gone))
	s.message("a", "room", id, away, gone, s.held.Fields, s.now.Add(20*time.Millisecond))
	return id
}

// accept appends the entry of an accepted update and records the call.
func (s *stateTest) accept(u update, e state.Entry) (id int64) {
	began := s.now.Add(900 * time.Millisecond)
	id = s.entry(e)
	u.channel = "room"
	s.updated(updateCall{update: u, by: "w", firstTry: began, began: began, ended: s.tick(100 * time.Millisecond), id: id})
	return id
}

// set sets a field.
func (s *stateTest) set(field, value string) (id int64) {
	return s.accept(update{set: map[string]string{field: value}}, state.Entry{Set: values(field, value)})
}

// lease sets a field that ends after d, and returns the end.
func (s *stateTest) lease(field string, d time.Duration) (until int64) {
	until = s.now.Add(d).UnixMilli()
	s.accept(update{set: map[string]string{field: "1"}}, state.Entry{Set: values(field, "1"), Until: map[string]int64{field: until}})
	return until
}

// refuse records a refusal.
func (s *stateTest) refuse(u update, r stateRefusal) {
	u.channel = "room"
	began := s.tick(time.Second)
	s.refused(updateCall{update: u, by: "w", firstTry: began, began: began, ended: s.tick(100 * time.Millisecond), refusal: &r})
}

func values(field, value string) map[string]json.RawMessage {
	return map[string]json.RawMessage{field: json.RawMessage(value)}
}

// check returns the counts of a scenario without a fault.
func (s *stateTest) check(t times) (stateCounts, evidence) {
	c := &stateCheck{journal: s.stateJournal, found: evidence{}, victim: "victim", judged: func(_, _ time.Time) bool { return true }}
	c.checkChannel("room", s.log)
	c.finish(t)
	return c.counts, c.found
}

// faultsOnly returns the counts that make a row red.
func faultsOnly(c stateCounts) stateCounts {
	return stateCounts{
		LostChanges: c.LostChanges, LostDurable: c.LostDurable, EndedEarly: c.EndedEarly, MissedChanges: c.MissedChanges, Oversold: c.Oversold,
		GhostFields: c.GhostFields, WrongConflicts: c.WrongConflicts, Late: c.Late,
	}
}

// shown returns fields of a refusal.
func shown(field string, f *state.Shown) map[string]*state.Shown {
	return map[string]*state.Shown{field: f}
}

func ifID(field string, id int64) update {
	return update{set: map[string]string{field: "9"}, ifID: map[string]int64{field: id}}
}

func TestStateCounts(t *testing.T) {
	wrong := stateCounts{WrongConflicts: 1}
	for name, tc := range map[string]struct {
		record func(s *stateTest)
		want   stateCounts
	}{
		"all is well": {func(s *stateTest) {
			first := s.set("doc/0", "1")
			s.accept(ifID("doc/0", first), state.Entry{Set: values("doc/0", "9")})
		}, stateCounts{}},

		"lost": {func(s *stateTest) { s.set("x", "1"); s.unkept = true; s.set("x", "2") }, stateCounts{LostChanges: 1}},
		"lost, durable": {func(s *stateTest) {
			s.unkept = true
			s.set("x", "1")
			s.calls[0].durable = true
		}, stateCounts{LostChanges: 1, LostDurable: 1}},
		"missed":                     {func(s *stateTest) { s.unseen = true; s.set("x", "1") }, stateCounts{MissedChanges: 1}},
		"missed, pages follow":       {func(s *stateTest) { s.unseen = true; s.pages("a", "room", s.set("x", "1"), nil, s.now) }, stateCounts{}},
		"missed, older pages follow": {func(s *stateTest) { s.unseen = true; s.pages("a", "room", s.set("x", "1")-1, nil, s.now) }, stateCounts{MissedChanges: 1}},
		"missed, a gap follows": {func(s *stateTest) {
			s.unseen = true
			s.gap("a", gap{queue: "room", after: 1, id: s.set("x", "1"), at: s.now})
		}, stateCounts{}},
		"missed, before the first pages": {func(s *stateTest) {
			s.unseen = true
			s.subscribers["a"].readyAt = s.now.Add(time.Hour)
			s.set("x", "1")
		}, stateCounts{}},

		"oversold": {func(s *stateTest) {
			s.set(seatLimitField, "1")
			s.set("seat/1", "1")
			s.unseen = true
			s.pages("a", "room", s.set("seat/2", "1"), nil, s.now)
		}, stateCounts{Oversold: 1}},
		"oversold for a follower only": {func(s *stateTest) {
			s.set(seatLimitField, "1")
			s.set("seat/1", "1")
			s.unkept = true
			s.entry(state.Entry{Set: values("seat/2", "1")})
		}, stateCounts{Oversold: 1}},
		"a limit after the seats": {func(s *stateTest) {
			s.set("seat/1", "1")
			s.set("seat/2", "1")
			s.set(seatLimitField, "1")
			s.set("seat/1", "2")
		}, stateCounts{}},
		"a seat ends with the claim of another": {func(s *stateTest) {
			s.set(seatLimitField, "1")
			until := s.lease("seat/1", 1500*time.Millisecond)
			s.now = time.UnixMilli(until)
			s.accept(ifID("seat/2", 0), state.Entry{Gone: map[string]string{"seat/1": state.Expired}, Set: values("seat/2", "9")})
		}, stateCounts{}},
		"a counter out of its bounds": {func(s *stateTest) { s.unseen = true; s.pages("a", "room", s.set("count/0", "-1"), nil, s.now) }, stateCounts{Oversold: 1}},

		"conflict": {func(s *stateTest) {
			id := s.set("doc/0", "1")
			s.refuse(ifID("doc/0", 0), stateRefusal{code: wire.Conflict, fields: shown("doc/0", &state.Shown{ID: id, Value: []byte("1")})})
		}, stateCounts{}},
		"conflict about a met condition": {func(s *stateTest) {
			id := s.set("doc/0", "1")
			s.refuse(ifID("doc/0", id), stateRefusal{code: wire.Conflict, fields: shown("doc/0", &state.Shown{ID: id, Value: []byte("1")})})
		}, wrong},
		"conflict without fields": {func(s *stateTest) { s.refuse(ifID("doc/0", 1), stateRefusal{code: wire.Conflict}) }, wrong},
		"conflict with an id that never was": {func(s *stateTest) {
			id := s.set("doc/0", "1")
			s.refuse(ifID("doc/0", id), stateRefusal{code: wire.Conflict, fields: shown("doc/0", &state.Shown{ID: id + 1, Value: []byte("1")})})
		}, wrong},
		"conflict with another value": {func(s *stateTest) {
			id := s.set("doc/0", "1")
			s.refuse(ifID("doc/0", 0), stateRefusal{code: wire.Conflict, fields: shown("doc/0", &state.Shown{ID: id, Value: []byte("2")})})
		}, wrong},
		"conflict with a value that was replaced": {func(s *stateTest) {
			id := s.set("doc/0", "1")
			s.set("doc/0", "2")
			s.refuse(ifID("doc/0", 0), stateRefusal{code: wire.Conflict, fields: shown("doc/0", &state.Shown{ID: id, Value: []byte("1")})})
		}, wrong},
		"conflict with a lease that has ended": {func(s *stateTest) {
			s.lease("seat/1", 2*time.Second)
			id := s.log[0].ID
			s.tick(5 * time.Second)
			s.refuse(ifID("seat/1", 0), stateRefusal{code: wire.Conflict, fields: shown("seat/1", &state.Shown{ID: id, Value: []byte("1")})})
		}, wrong},
		"conflict with a field that was removed": {func(s *stateTest) {
			id := s.set("doc/0", "1")
			s.accept(update{del: []string{"doc/0"}}, state.Entry{Del: []string{"doc/0"}})
			s.refuse(ifID("doc/0", id), stateRefusal{code: wire.Conflict, fields: shown("doc/0", nil)})
			s.refuse(ifID("doc/0", 0), stateRefusal{code: wire.Conflict, fields: shown("doc/0", &state.Shown{ID: id, Value: []byte("1")})})
		}, wrong},
		"conflict with an absent field that is there": {func(s *stateTest) {
			s.set("doc/0", "1")
			s.refuse(ifID("doc/0", 5), stateRefusal{code: wire.Conflict, fields: shown("doc/0", nil)})
		}, wrong},
		"full with free seats": {func(s *stateTest) {
			id := s.set("seat/1", "1")
			s.refuse(ifID("seat/2", 0), stateRefusal{code: wire.Full, group: seatGroup, max: seatLimit, fields: shown("seat/1", &state.Shown{ID: id, Value: []byte("1")})})
		}, wrong},
		"full": {func(s *stateTest) {
			r := stateRefusal{code: wire.Full, group: seatGroup, max: seatLimit, fields: map[string]*state.Shown{}}
			for _, seat := range []string{"seat/1", "seat/2", "seat/3", "seat/4"} {
				r.fields[seat] = &state.Shown{ID: s.set(seat, "1"), Value: []byte("1")}
			}
			s.refuse(ifID("seat/5", 0), r)
		}, stateCounts{}},
		"full by the rule": {func(s *stateTest) {
			r := stateRefusal{code: wire.Full, group: seatGroup, max: seatRuleLimit, fields: map[string]*state.Shown{}}
			for _, seat := range []string{"seat/1", "seat/2", "seat/3", "seat/4", "seat/5", "seat/6"} {
				r.fields[seat] = &state.Shown{ID: s.set(seat, "1"), Value: []byte("1")}
			}
			s.refuse(ifID("seat/7", 0), r)
			r.fields = maps.Clone(r.fields)
			delete(r.fields, "seat/1")
			s.refuse(ifID("seat/7", 0), r) // it shows only five
		}, wrong},
		"over the limit of the rule": {func(s *stateTest) {
			for _, seat := range []string{"seat/1", "seat/2", "seat/3", "seat/4", "seat/5", "seat/6"} {
				s.set(seat, "1")
			}
			s.unseen = true
			s.pages("a", "room", s.set("seat/7", "1"), nil, s.now)
		}, stateCounts{Oversold: 1}},

		"claimed by the same user":               {func(s *stateTest) { s.claim("amy/tab"); s.claim("amy/phone"); s.claim(backendName) }, stateCounts{}},
		"claimed by another user":                {func(s *stateTest) { s.claim("amy/tab"); s.claim("bob/tab") }, wrong},
		"claimed by the backend":                 {func(s *stateTest) { s.claim(backendName); s.claim("bob/tab") }, wrong},
		"claimed after it was removed":           {func(s *stateTest) { s.claim("amy/tab"); s.remove("amy/phone"); s.claim("bob/tab") }, stateCounts{}},
		"removed by another user":                {func(s *stateTest) { s.claim("amy/tab"); s.remove("bob/tab") }, wrong},
		"refused because another user holds it":  {func(s *stateTest) { s.refuseClaim("bob/tab", s.claim("amy/tab")) }, stateCounts{}},
		"refused because the backend holds it":   {func(s *stateTest) { s.refuseClaim("bob/tab", s.claim(backendName)) }, stateCounts{}},
		"refused although the user holds it":     {func(s *stateTest) { s.refuseClaim("amy/phone", s.claim("amy/tab")) }, wrong},
		"refused although the backend may write": {func(s *stateTest) { s.refuseClaim(backendName, s.claim("amy/tab")) }, wrong},

		"limit": {func(s *stateTest) {
			id := s.set("count/0", "6")
			u := update{add: map[string]addition{"count/0": {By: 1, Max: countLimit}}}
			s.refuse(u, stateRefusal{code: wire.OutOfRange, fields: shown("count/0", &state.Shown{ID: id, Value: []byte("6")})})
		}, stateCounts{}},
		"limit within the bounds": {func(s *stateTest) {
			id := s.set("count/0", "5")
			u := update{add: map[string]addition{"count/0": {By: 1, Max: countLimit}}}
			s.refuse(u, stateRefusal{code: wire.OutOfRange, fields: shown("count/0", &state.Shown{ID: id, Value: []byte("5")})})
		}, wrong},
		"not found": {func(s *stateTest) { s.refuse(update{touch: []string{"x"}}, stateRefusal{code: wire.NotFound}) }, stateCounts{}},
		"not found, although it is there": {func(s *stateTest) {
			s.set("x", "1")
			s.refuse(update{touch: []string{"x"}}, stateRefusal{code: wire.NotFound})
		}, wrong},
		"another error":    {func(s *stateTest) { s.refuse(ifID("x", 0), stateRefusal{code: wire.BadRequest}) }, wrong},
		"the store failed": {func(s *stateTest) { s.refuse(ifID("x", 0), stateRefusal{code: wire.Unavailable}) }, stateCounts{}},
		"accepted with an unmet condition": {func(s *stateTest) {
			s.set("seat/1", "1")
			s.accept(ifID("seat/1", 0), state.Entry{Set: values("seat/1", "9")})
		}, wrong},
		"accepted with another result": {func(s *stateTest) {
			s.accept(update{add: map[string]addition{"count/0": {By: 1, Max: countLimit}}}, state.Entry{Set: values("count/0", "1")})
			s.calls[0].numbers = map[string]int64{"count/0": 2}
		}, wrong},

		"expired": {func(s *stateTest) {
			s.now = time.UnixMilli(s.lease("x", 2*time.Second))
			s.entry(state.Entry{Gone: map[string]string{"x": state.Expired}})
		}, stateCounts{}},
		"expired late": {func(s *stateTest) {
			s.now = time.UnixMilli(s.lease("x", 2*time.Second)).Add(lateBound)
			s.entry(state.Entry{Gone: map[string]string{"x": state.Expired}})
		}, stateCounts{Late: 1}},
		"expired early": {func(s *stateTest) {
			s.lease("x", time.Minute)
			s.entry(state.Entry{Gone: map[string]string{"x": state.Expired}})
		}, stateCounts{EndedEarly: 1}},
		"expired without a lease":  {func(s *stateTest) { s.set("x", "1"); s.entry(state.Entry{Gone: map[string]string{"x": state.Expired}}) }, stateCounts{EndedEarly: 1}},
		"left while connected":     {func(s *stateTest) { s.leave() }, stateCounts{EndedEarly: 1}},
		"left after disconnecting": {func(s *stateTest) { s.connected("a", "room", "", s.now); s.leave() }, stateCounts{}},
		"left while connected to the victim": {func(s *stateTest) {
			s.connected("a", "room", "", s.now)
			s.connected("a", "room", "victim", s.now)
			s.leave()
		}, stateCounts{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStateTest()
			tc.record(s)
			got, found := s.check(times{fullBeat})
			if got = faultsOnly(got); got != tc.want {
				t.Errorf("got  %+v\nwant %+v\n%q", got, tc.want, found)
			}
		})
	}
}

// claim records that a client, or the backend, has set seat/1.
func (s *stateTest) claim(by string) (id int64) {
	e := state.Entry{Set: values("seat/1", "1")}
	if by != backendName {
		e.By = by
	}
	id = s.accept(update{set: map[string]string{"seat/1": "1"}}, e)
	s.calls[len(s.calls)-1].by = by
	return id
}

// remove records that a client has removed seat/1.
func (s *stateTest) remove(by string) {
	s.accept(update{del: []string{"seat/1"}}, state.Entry{Del: []string{"seat/1"}, By: by})
	s.calls[len(s.calls)-1].by = by
}

// refuseClaim records that a client may not set seat/1, which another one set under the id.
func (s *stateTest) refuseClaim(by string, id int64) {
	u := update{set: map[string]string{"seat/1": "2"}}
	s.refuse(u, stateRefusal{code: wire.Conflict, fields: shown("seat/1", &state.Shown{ID: id, Value: []byte("1")})})
	s.calls[len(s.calls)-1].by = by
}

// leave ends the field of the follower, because it has left.
func (s *stateTest) leave() {
	field := memberField("a")
	s.set(field, "1")
	until := s.now.Add(stateGrace).UnixMilli()
	s.entry(state.Entry{Away: map[string]int64{field: until}})
	s.now = time.UnixMilli(until)
	s.entry(state.Entry{Gone: map[string]string{field: state.Left}})
}
