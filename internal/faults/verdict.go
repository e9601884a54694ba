package main

import (
	"slices"
	"time"
)

// counts are the columns of the ledger that come from the journal. They count messages per
// addressee: a message to a channel with forty subscribers counts forty times.
type counts struct {
	Acknowledged   int `json:"acknowledged"`   // addressees of accepted pushes: ready before the push, and named in its answer
	Delivered      int `json:"delivered"`      // of these, delivered
	Lost           int `json:"lost"`           // of these, not delivered
	Duplicated     int `json:"duplicated"`     // arrived again under the same id, past the client's duplicate filter
	Again          int `json:"again"`          // arrived also under an id that was never acknowledged, from a refused attempt
	Disorder       int `json:"disorder"`       // arrived after a higher id or number
	Undeclared     int `json:"undeclared"`     // lost without a gap
	Strange        int `json:"strange"`        // arrived at a wrong addressee, under another id than acknowledged, or without a push
	Unnamed        int `json:"unnamed"`        // connected devices missing from the answer to a push to their user
	Unacknowledged int `json:"unacknowledged"` // arrived although the push was never accepted
	Gaps           int `json:"gaps"`           // gaps that clients received
	Refused        int `json:"refused"`        // failed attempts to push
}

// kindCounts are the counts of the clients over one kind of listener.
type kindCounts struct {
	Acknowledged int `json:"acknowledged"`
	Delivered    int `json:"delivered"`
	Lost         int `json:"lost"`
	Undeclared   int `json:"undeclared"`
	Duplicated   int `json:"duplicated"`
	Gaps         int `json:"gaps"`
	Resumed      int `json:"resumed"` // connections that continued after an earlier one
}

// countKind counts for the clients over one kind of listener.
func (j *journal) countKind(over listener) kindCounts {
	c, _ := j.countClients(func(r *clientRecord) bool { return r.listener == over })
	k := kindCounts{
		Acknowledged: c.Acknowledged, Delivered: c.Delivered, Lost: c.Lost, Undeclared: c.Undeclared,
		Duplicated: c.Duplicated, Gaps: c.Gaps,
	}
	j.update(func() { k.Resumed = j.resumed[over] })
	return k
}

// count compares pushes with arrivals. It changes nothing, so it can be called repeatedly.
func (j *journal) count() (counts, evidence) {
	return j.countClients(func(*clientRecord) bool { return true })
}

// countClients is count for the clients that match. Disorder, Strange and Refused are of all
// clients.
func (j *journal) countClients(match func(*clientRecord) bool) (counts, evidence) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := counts{Disorder: j.disorder, Strange: j.strange}
	found := evidence{}
	for kind, cases := range j.evidence {
		found[kind] = slices.Clone(cases)
	}
	for i := range j.pushes {
		j.countPushLocked(&j.pushes[i], match, &c, found)
	}
	for client, record := range j.clients {
		if !match(record) {
			continue
		}
		c.Gaps += len(record.gaps)
		for it, ids := range record.got {
			if !j.accepted[it] {
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
	for _, n := range j.refused {
		c.Refused += n
	}
	return c, found
}

// countPushLocked counts each addressee of one push that matches.
func (j *journal) countPushLocked(p *acceptedPush, match func(*clientRecord) bool, c *counts, found evidence) {
	for _, client := range p.to {
		record := j.clients[client]
		if record == nil || !match(record) || !record.readyAt.Before(p.firstTry) {
			continue // the client was not ready when the push began
		}
		id, named := p.ids[client]
		if !named {
			c.Unnamed++
			found.add("unnamed", "the answer to %v does not name %s", p.item, client)
			continue
		}
		if j.isUnseenLocked(p, id, record) {
			continue // countErasures counts it
		}
		c.Acknowledged++
		got := record.got[p.item]
		switch {
		case slices.Contains(got, id):
			c.Delivered++
		case len(got) > 0:
			c.Delivered++
			c.Strange++
			found.add("strange", "%v was acknowledged for %s with id %d and arrived with %v", p.item, client, id, got)
		default:
			c.Lost++
			if record.gapCovers(p.queue, id, p.acceptedAt) {
				continue
			}
			c.Undeclared++
			found.add("undeclared", "%v, acknowledged %s for %s in %q with id %d, which received ids up to %d of it and %d gaps",
				p.item, j.relativeToFault(p.acceptedAt), client, p.queue, id, record.lastID[p.queue], len(record.gaps))
		}
	}
}

// relativeToFault formats a time relative to the fault.
func (j *journal) relativeToFault(at time.Time) string {
	if j.faultAt.IsZero() {
		return "without a fault"
	}
	if at.Before(j.faultAt) {
		return j.faultAt.Sub(at).Round(time.Millisecond).String() + " before the fault"
	}
	return at.Sub(j.faultAt).Round(time.Millisecond).String() + " after the fault"
}

func (c *clientRecord) gapCovers(queue string, id int64, acked time.Time) bool {
	return slices.ContainsFunc(c.gaps, func(g gap) bool { return g.covers(queue, id, acked) })
}

// outages are the interruptions that the fault caused.
type outages struct {
	WithoutPush time.Duration // longest time without an accepted push
	Pauses      time.Duration // sum of the times without one that are at least longPause
	RecoverP50  time.Duration // time from the fault to the first message pushed after it, median over clients
	RecoverMax  time.Duration
	Silence     time.Duration // longest time between two messages of one client
	Slowest     string        // the client that took RecoverMax
	Unrecovered int           // clients that received no such message
}

func (j *journal) outages() outages {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := outages{WithoutPush: j.longestWithoutPush, Pauses: j.pauses, Silence: j.longestSilence}
	var all []time.Duration
	for client, record := range j.clients {
		if record.recovered > 0 {
			if all = append(all, record.recovered); record.recovered == slices.Max(all) {
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
