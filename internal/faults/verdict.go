package main

import (
	"slices"
	"time"
)

// counts are the columns of the ledger that come from the book, in addressee-messages: a
// message to a channel with forty subscribers is forty.
type counts struct {
	Acknowledged   int `json:"acknowledged"`   // confirmed addressees of accepted pushes
	Delivered      int `json:"delivered"`      // of these, what arrived
	Lost           int `json:"lost"`           // of these, what did not
	Duplicated     int `json:"duplicated"`     // what arrived a second time under the same id, behind the client's filter
	Again          int `json:"again"`          // what arrived also under an id that was never acknowledged: an attempt that was refused
	Disorder       int `json:"disorder"`       // what arrived behind a higher id or number
	Undeclared     int `json:"undeclared"`     // lost, and no gap told of it
	Strange        int `json:"strange"`        // to a wrong addressee, under another id than acknowledged, or never pushed
	Unnamed        int `json:"unnamed"`        // connected devices that the answer to a push to their user left out
	Unacknowledged int `json:"unacknowledged"` // arrived, although the push was never accepted
	Gaps           int `json:"gaps"`           // gaps that clients were told
	Refused        int `json:"refused"`        // attempts to push that failed
}

// count compares. It changes nothing, so that it can be asked again until all is there.
func (b *book) count() (counts, evidence) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := counts{Disorder: b.disorder, Strange: b.strange}
	found := evidence{}
	for kind, cases := range b.evidence {
		found[kind] = slices.Clone(cases)
	}
	for i := range b.pushes {
		b.settleLocked(&b.pushes[i], &c, found)
	}
	for client, s := range b.seats {
		c.Gaps += len(s.gaps)
		for it, ids := range s.got {
			if !b.accepted[it] {
				c.Unacknowledged++
			}
			different := slices.Compact(slices.Sorted(slices.Values(ids)))
			if n := len(ids) - len(different); n > 0 {
				c.Duplicated += n
				found.add("duplicated", "%s got %v with ids %v", client, it, ids)
			}
			if n := len(different) - 1; n > 0 {
				c.Again += n
				found.add("again", "%s got %v with ids %v", client, it, ids)
			}
		}
	}
	for _, n := range b.refused {
		c.Refused += n
	}
	return c, found
}

// settleLocked looks at each addressee of one push.
func (b *book) settleLocked(p *push, c *counts, found evidence) {
	for _, client := range p.to {
		s := b.seats[client]
		if s == nil || !s.since.Before(p.first) {
			continue // it was not confirmed when the push began
		}
		id, named := p.ids[client]
		if !named {
			c.Unnamed++
			found.add("unnamed", "the answer to %v does not name %s", p.item, client)
			continue
		}
		c.Acknowledged++
		got := s.got[p.item]
		switch {
		case slices.Contains(got, id):
			c.Delivered++
		case len(got) > 0:
			c.Delivered++
			c.Strange++
			found.add("strange", "%v was acknowledged for %s with id %d and arrived with %v", p.item, client, id, got)
		default:
			c.Lost++
			if s.declared(p.queue, id, p.acked) {
				continue
			}
			c.Undeclared++
			found.add("undeclared", "%v, acknowledged %s for %s in %q with id %d, which saw up to %d of it and was told of %d gaps",
				p.item, b.when(p.acked), client, p.queue, id, s.lastID[p.queue], len(s.gaps))
		}
	}
}

// when says a time as the story has it: seconds behind the fault.
func (b *book) when(at time.Time) string {
	if b.injected.IsZero() {
		return "without a fault"
	}
	if at.Before(b.injected) {
		return b.injected.Sub(at).Round(time.Millisecond).String() + " before the fault"
	}
	return at.Sub(b.injected).Round(time.Millisecond).String() + " after the fault"
}

func (s *seat) declared(queue string, id int64, acked time.Time) bool {
	return slices.ContainsFunc(s.gaps, func(g gap) bool { return g.covers(queue, id, acked) })
}

// pauses are what the fault cost in time.
type pauses struct {
	WithoutPush time.Duration // the longest without an accepted push
	RecoverP50  time.Duration // fault to the first message pushed after it, over clients
	RecoverMax  time.Duration
	Silence     time.Duration // the longest between two messages of one client
	Slowest     string        // the client that took RecoverMax
	Unrecovered int           // clients that got no such message at all
}

func (b *book) pauses() pauses {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := pauses{WithoutPush: b.longest, Silence: b.silence}
	var all []time.Duration
	for client, s := range b.seats {
		if s.recovered > 0 {
			if all = append(all, s.recovered); s.recovered == slices.Max(all) {
				p.Slowest = client
			}
		} else {
			p.Unrecovered++
		}
	}
	if len(all) > 0 {
		slices.Sort(all)
		p.RecoverP50, p.RecoverMax = all[len(all)/2], all[len(all)-1]
	}
	return p
}
