package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"switchboard/internal/replay"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// stateCounts are the columns about channel state.
type stateCounts struct {
	Updates        int `json:"updates"`            // accepted updates
	Refusals       int `json:"state_refusals"`     // updates that the state refused
	LostChanges    int `json:"lost_changes"`       // of the updates: not in the log in the end
	Durable        int `json:"durable_updates"`    // of the updates: durable
	LostDurable    int `json:"lost_durable"`       // of these, not in the log
	EndedEarly     int `json:"ended_early"`        // fields that ended before their time, or whose owner was connected
	DueInJS        int `json:"javascript_due"`     // changes that the clients of client/js had to learn of
	ChangesInJS    int `json:"javascript_changes"` // of these, received as changes; pages and gaps declare the others
	MissedChanges  int `json:"missed_changes"`     // changes that a subscriber did not receive, and that neither pages nor a gap declared
	Diverged       int `json:"diverged"`           // fields of subscribers that differ from the store's in the end
	Oversold       int `json:"oversold"`           // groups above their limit, counters out of their bounds
	GhostFields    int `json:"ghost_fields"`       // fields shown although their owner or their lease has ended
	WrongConflicts int `json:"wrong_conflicts"`    // refusals that contradict the log, and updates whose conditions did
	Expiries       int `json:"expiries"`           // leases that ended
	Late           int `json:"late"`               // of these, published too late

	LateP50 time.Duration `json:"-"` // from the end of a lease until a subscriber received it
	LateMax time.Duration `json:"-"`
	AwayMax time.Duration `json:"-"` // from the death of an owner's broker until its field was away
}

const (
	// clockSlack is the most by which the clocks of this program and of the store differ, and by which
	// an id is late.
	clockSlack = 250 * time.Millisecond
	// lateBound is the most time from the end of a lease until it is published, while Redis can be
	// reached: two servers that are dead wait for their turn, and a sweep that failed is repeated.
	lateBound = 4 * time.Second
	// stateGrace is the grace period of owned fields in a namespace without a grace of its own.
	stateGrace = 15 * time.Second
	// resumeTime is the most time from connecting to the end of the grace period, apart from the time
	// in which Redis cannot be reached.
	resumeTime = 5 * time.Second
)

// stateCheck compares the journal with the logs of the store.
type stateCheck struct {
	journal *stateJournal
	counts  stateCounts
	found   evidence
	outage  time.Duration   // outages.Pauses
	inJS    map[string]bool // subscribers with client/js
	victim  string          // id of the server that the fault hits, which may seem dead to the others
	// judged reports whether the log shows what the state was at all times between two. Not if Redis
	// has lost a part of it.
	judged func(from, to time.Time) bool
	late   []time.Duration
}

// checkChannel checks the log of one channel.
func (c *stateCheck) checkChannel(channel string, log []replay.Entry) {
	l := c.replay(channel, log)
	for _, call := range c.journal.calls {
		if call.channel != channel {
			continue
		}
		if call.refusal != nil {
			c.checkRefusal(l, call)
			continue
		}
		c.counts.Updates++
		if call.durable {
			c.counts.Durable++
		}
		if !l.ids[call.id] {
			c.counts.LostChanges++
			if call.durable {
				c.counts.LostDurable++
			}
			c.found.add("lost change", "%s of %s, accepted with id %d", call.describe(), channel, call.id)
		}
		c.checkDeclared(call)
	}
}

// checkDeclared counts the subscribers that received a change, and those that missed it.
func (c *stateCheck) checkDeclared(call updateCall) {
	for client, s := range c.journal.subscribers {
		if s.mustLearn(call) && c.inJS[client] {
			c.counts.DueInJS++
			if s.ids[call.id] {
				c.counts.ChangesInJS++
			}
		}
		if !s.missed(call) {
			continue
		}
		c.counts.MissedChanges++
		c.found.add("missed change", "%s did not receive %s of %s, accepted with id %d; it received %d changes and pages %v",
			client, call.describe(), call.channel, call.id, len(s.ids), s.pages)
	}
}

// replay applies the log, and checks each entry.
func (c *stateCheck) replay(channel string, log []replay.Entry) *stateLog {
	l := &stateLog{channel: channel, ids: map[int64]bool{}, versions: map[string][]version{}}
	calls := map[int64]updateCall{}
	for _, call := range c.journal.calls {
		if call.channel == channel && call.id != 0 {
			calls[call.id] = call
		}
	}
	replay.Each(log, func(logged replay.Entry, before, after map[string]state.Shown) {
		if logged.Changes == nil {
			return
		}
		c.checkEnds(channel, logged, before)
		if call, found := calls[logged.ID]; found {
			live := &state.Map{Fields: maps.Clone(before)}
			live.Apply(logged.ID, &state.Entry{Cleared: logged.Changes.Cleared, Gone: logged.Changes.Gone})
			c.checkAccepted(call, live.Fields, after)
			c.checkClaims(l, call, live.Fields)
		}
		for _, fault := range overLimits(after, countSeats(before)) {
			c.counts.Oversold++
			c.found.add("oversold", "%s at id %d: %s", channel, logged.ID, fault)
		}
		l.apply(logged, before, after)
	})
	return l
}

// checkEnds checks the fields that ended with an entry.
func (c *stateCheck) checkEnds(channel string, logged replay.Entry, before map[string]state.Shown) {
	at := replay.Time(logged.ID)
	for field, reason := range logged.Changes.Gone {
		until := time.UnixMilli(before[field].Until)
		if before[field].Until == 0 || at.Before(until) {
			c.counts.EndedEarly++
			c.found.add("ended early", "%s in %s ended (%s) before its time", field, channel, reason)
			continue
		}
		if reason == state.Left {
			c.checkLeft(channel, field, at)
			continue
		}
		c.counts.Expiries++
		seen := c.journal.seen[entryKey{channel, logged.ID}]
		if seen.IsZero() {
			continue // no subscriber was connected
		}
		late := max(0, seen.Sub(until))
		if c.late = append(c.late, late); late > lateBound+c.outage {
			c.counts.Late++
			c.found.add("late", "%s in %s was due %s, published %s later", field, channel, until.Format(time.TimeOnly), late)
		}
	}
}

// checkLeft checks that the owner of a field that ended had left.
func (c *stateCheck) checkLeft(channel, field string, at time.Time) {
	owner, _ := ownerOf(field)
	s := c.journal.subscribers[owner]
	if s != nil && s.connectedThroughout(at.Add(-resumeTime-c.outage), at, c.victim) {
		c.counts.EndedEarly++
		c.found.add("ended early", "%s in %s ended because its owner had left, which was connected", field, channel)
	}
}

// checkAccepted checks an accepted update. before are the fields that it found, after are those
// that it left.
func (c *stateCheck) checkAccepted(call updateCall, before, after map[string]state.Shown) {
	for field, id := range call.ifID {
		if before[field].ID != id {
			c.wrong("%s was accepted with id %d on the condition that %s has id %d, which had %d", call.describe(), call.id, field, id, before[field].ID)
		}
	}
	for field, n := range call.numbers {
		if string(after[field].Value) != fmt.Sprint(n) {
			c.wrong("%s was accepted with the result %s = %d, which is %s", call.describe(), field, n, after[field].Value)
		}
	}
}

// checkClaims checks that an accepted update changes no seat of another user. before are the fields
// that it found.
func (c *stateCheck) checkClaims(l *stateLog, call updateCall, before map[string]state.Shown) {
	for field, f := range before {
		if call.writes(field) && l.isClaimed(field, f.ID, call.by) {
			c.wrong("%s was accepted with id %d, although another user holds %s", call.describe(), call.id, field)
		}
	}
}

func (c *stateCheck) wrong(format string, args ...any) {
	c.counts.WrongConflicts++
	c.found.add("wrong conflict", format, args...)
}

// checkRefusal checks that the fields of a refusal are a reason for it, and that they were the
// fields of the channel during the call.
func (c *stateCheck) checkRefusal(l *stateLog, call updateCall) {
	r := call.refusal
	c.counts.Refusals++
	reason := r.missingReason(call.update)
	if reason != "" && !r.showsSeat(call) {
		c.wrong("%s was refused (%s): %s", call.describe(), r.code, reason)
		return
	}
	from, to := call.began.Add(-clockSlack), call.ended.Add(clockSlack)
	if !c.judged(from, to) {
		return
	}
	if reason != "" && !r.showsClaim(l, call) {
		c.wrong("%s was refused (%s): %s, and no seat of another user", call.describe(), r.code, reason)
		return
	}
	shown := maps.Clone(r.fields)
	if r.code == wire.NotFound {
		shown = map[string]*state.Shown{}
		for _, field := range call.touch {
			shown[field] = nil
		}
	}
	for field, f := range shown {
		if f == nil {
			if slices.ContainsFunc(l.versions[field], func(v version) bool { return v.liveThroughout(from, to) }) {
				c.wrong("%s was refused (%s) because %s is absent, which it was not", call.describe(), r.code, field)
			}
			continue
		}
		switch v, found := l.find(field, f.ID); {
		case !found:
			c.wrong("%s was refused (%s) because of %s with id %d, which the log does not have", call.describe(), r.code, field, f.ID)
		case v.value != string(f.Value):
			c.wrong("%s was refused (%s) because of %s = %s with id %d, which is %s", call.describe(), r.code, field, f.Value, f.ID, v.value)
		case !v.liveAt(from, to):
			c.wrong("%s was refused (%s) because of %s with id %d, which had ended or begun at another time", call.describe(), r.code, field, f.ID)
		}
	}
}

// showsSeat reports whether the refusal shows a seat that a client would change. Another user may
// hold it.
func (r stateRefusal) showsSeat(call updateCall) bool {
	for field, f := range r.fields {
		if f != nil && strings.HasPrefix(field, seatGroup) && call.writes(field) {
			return r.code == wire.Conflict && call.by != backendName
		}
	}
	return false
}

// showsClaim reports whether the refusal shows a seat of another user that the update would change.
func (r stateRefusal) showsClaim(l *stateLog, call updateCall) bool {
	for field, f := range r.fields {
		if r.code == wire.Conflict && f != nil && call.writes(field) && l.isClaimed(field, f.ID, call.by) {
			return true
		}
	}
	return false
}

// missingReason returns why the refusal does not follow from the fields that it shows, or "".
func (r stateRefusal) missingReason(u update) string {
	switch r.code {
	case wire.Conflict:
		for field, id := range u.ifID {
			if f, shown := r.fields[field]; shown && (f == nil && id != 0 || f != nil && f.ID != id) {
				return ""
			}
		}
		return "it shows no field that does not meet its condition"
	case wire.Full:
		seats := 0
		for field := range r.fields {
			if strings.HasPrefix(field, seatGroup) {
				seats++
			}
		}
		if r.group != seatGroup || r.max != seatLimit && r.max != seatRuleLimit || seats < r.max {
			return fmt.Sprintf("it shows %d fields of the group %s, at most %d are allowed", seats, r.group, r.max)
		}
	case wire.OutOfRange:
		for field, a := range u.add {
			n := int64(0)
			if f := r.fields[field]; f != nil {
				if _, err := fmt.Sscan(string(f.Value), &n); err != nil {
					return fmt.Sprintf("%s = %s", field, f.Value)
				}
			}
			if a.allows(n) {
				return fmt.Sprintf("%d%+d is within the bounds", n, a.By)
			}
		}
	case wire.NotFound:
		if len(u.touch) == 0 {
			return "it touches nothing"
		}
	default:
		return "no such refusal is expected"
	}
	return ""
}

// describe names the update in evidence.
func (c updateCall) describe() string {
	var parts []string
	for field, value := range c.set {
		parts = append(parts, "set "+field+" = "+value)
	}
	for field, a := range c.add {
		parts = append(parts, fmt.Sprintf("add %d to %s", a.By, field))
	}
	for _, field := range c.del {
		parts = append(parts, "del "+field)
	}
	for _, field := range c.touch {
		parts = append(parts, "touch "+field)
	}
	return fmt.Sprintf("%q by %s", strings.Join(parts, ", "), c.by)
}
