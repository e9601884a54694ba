package main

import "time"

// messageKey identifies a stored message of a channel.
type messageKey struct {
	channel string
	id      int64
}

// erasure is the erasure of a message.
type erasure struct {
	push       acceptedPush
	report     int64     // id of the entry that reports it; 0 if the broker does not know it any more
	acceptedAt time.Time // zero until a broker accepts it
	unknown    bool      // the store did not have the message
}

// eraseCounts are the columns of the ledger about erasures.
type eraseCounts struct {
	Erasures       int `json:"erasures"`         // accepted erasures
	LostErasures   int `json:"erasures_lost"`    // erasures of acknowledged messages that the store did not know
	ErasedUnseen   int `json:"erased_unseen"`    // addressees that the message had not reached when it was erased
	ReportsDue     int `json:"reports_due"`      // addressees that had to learn of an erasure
	Reported       int `json:"reported"`         // of these, those that received the report
	Unreported     int `json:"unreported"`       // of these, those that did not, without a gap
	RepeatedReport int `json:"reports_repeated"` // reports that a client received again
	Revealed       int `json:"revealed"`         // erased messages that were shown after their report, or in the end
	MissedByReader int `json:"missed_by_reader"` // stored messages and reports that a reader in the end did not receive
	ReadInTheEnd   int `json:"read_in_the_end"`  // stored messages and reports that it received
}

// erasing records that the erasure of a message begins.
func (j *journal) erasing(p acceptedPush, id int64) {
	j.update(func() { j.erasures[messageKey{p.queue, id}] = &erasure{push: p} })
}

// erased records that a broker accepted an erasure.
func (j *journal) erased(key messageKey, report int64, at time.Time) {
	j.update(func() { e := j.erasures[key]; e.report, e.acceptedAt = report, at })
}

// erasedUnknown records that the store did not know the message.
func (j *journal) erasedUnknown(key messageKey) {
	j.update(func() { j.erasures[key].unknown = true })
}

// reported records that a client received the report of an erasure.
func (j *journal) reported(client string, key messageKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	record := j.clients[client]
	if record == nil {
		return
	}
	if j.erasures[key] == nil {
		j.strange++
		j.evidence.add("strange", "%s got a report that message %d of %q was erased, and it was not", client, key.id, key.channel)
	}
	if record.reports[key]++; record.reports[key] > 1 {
		j.erase.RepeatedReport++
		j.evidence.add("repeated report", "%s got the report about message %d of %q again", client, key.id, key.channel)
	}
}

// revealLocked records that erased data was shown.
func (j *journal) revealLocked(to string, key messageKey) {
	j.erase.Revealed++
	j.evidence.add("revealed", "%s shows message %d of %q, which was erased", to, key.id, key.channel)
}

// isErased reports whether a broker has accepted the erasure of a message.
func (j *journal) isErased(key messageKey) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.erasures[key]
	return e != nil && !e.acceptedAt.IsZero()
}

// isUnseenLocked reports whether a client lacks a message because it was erased before.
func (j *journal) isUnseenLocked(p *acceptedPush, id int64, record *clientRecord) bool {
	e := j.erasures[messageKey{p.queue, id}]
	return len(record.got[p.item]) == 0 && e != nil && !e.unknown
}

// countErasures compares the erasures with the reports that arrived. It changes nothing, so it can
// be called repeatedly.
func (j *journal) countErasures() (eraseCounts, evidence) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c, found := j.erase, evidence{}
	for key, e := range j.erasures {
		if e.unknown {
			c.LostErasures++
			found.add("lost erasure", "%v, acknowledged %s with id %d in %q, was not known when it was erased",
				e.push.item, j.relativeToFault(e.push.acceptedAt), key.id, key.channel)
		}
		if e.acceptedAt.IsZero() {
			continue
		}
		c.Erasures++
		for _, client := range e.push.to {
			j.countReportLocked(client, key, e, &c, found)
		}
	}
	return c, found
}

// countReportLocked counts one addressee of an erased message.
func (j *journal) countReportLocked(client string, key messageKey, e *erasure, c *eraseCounts, found evidence) {
	record := j.clients[client]
	if record == nil || !record.readyAt.Before(e.push.firstTry) {
		return // the client was not ready when the push began
	}
	if len(record.got[e.push.item]) == 0 {
		c.ErasedUnseen++
	}
	c.ReportsDue++
	switch {
	case record.reports[key] > 0:
		c.Reported++
	case e.report == 0 || !record.gapCovers(key.channel, e.report, e.acceptedAt):
		c.Unreported++
		found.add("unreported", "%s did not receive the report %d, accepted %s, that %v in %q with id %d was erased",
			client, e.report, j.relativeToFault(e.acceptedAt), e.push.item, key.channel, key.id)
	}
}

// unfinishedErasures returns how many erasures were never answered.
func (j *journal) unfinishedErasures() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.erasures {
		if e.acceptedAt.IsZero() && !e.unknown {
			n++
		}
	}
	return n
}
