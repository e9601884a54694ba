package main

import (
	"fmt"
	"sync"
	"time"
)

// item identifies a message by its stream and its number in the stream. Both are in the payload.
type item struct {
	stream string
	n      int // from 1
}

// acceptedPush is a push that a broker accepted.
type acceptedPush struct {
	item
	queue      string           // queue that holds it: a channel, or "" for the client's inbox
	to         []string         // addressed clients
	ids        map[string]int64 // message id by client, from the answer
	firstTry   time.Time        // time of the first attempt
	acceptedAt time.Time        // time of the acceptance
}

// gap is a gap that a client was notified of.
type gap struct {
	queue     string
	after, id int64
	at        time.Time
}

// covers reports whether the gap declares a message lost. A gap with id < after is a reset: the
// queue has lost its newest messages and continues after id. A reset declares a message lost if its
// id is above that of the gap and it was acknowledged before the gap arrived.
func (g gap) covers(queue string, id int64, acked time.Time) bool {
	switch {
	case g.queue != queue:
		return false
	case g.id < g.after:
		return id > g.id && acked.Before(g.at)
	}
	return g.after < id && id <= g.id
}

// clientRecord holds what one client received.
type clientRecord struct {
	listener    listener
	readyAt     time.Time          // when all its subscriptions were confirmed
	got         map[item][]int64   // the ids under which each message arrived; more than one is a fault
	lastID      map[string]int64   // by queue
	lastN       map[string]int     // by stream
	reports     map[messageKey]int // how often each report of an erasure arrived
	gaps        []gap
	lastArrival time.Time     // time of the last message
	recovered   time.Duration // time from the fault to the first message pushed after it
}

// journal compares what was acknowledged with what arrived. It asks neither brokers nor clients:
// publishers and client callbacks record what they saw.
type journal struct {
	mu       sync.Mutex // guards the fields below
	clients  map[string]*clientRecord
	pushes   []acceptedPush
	attempts map[item]time.Time // time of the first attempt
	accepted map[item]bool
	refused  map[string]int // failed attempts by reason
	erasures map[messageKey]*erasure
	resumed  map[listener]int // connections after the first one

	faultAt            time.Time // zero before the fault
	lastAccepted       time.Time
	longestWithoutPush time.Duration // longest time without an accepted push
	pauses             time.Duration // sum of the times without one that are at least longPause
	longestSilence     time.Duration // longest time between two messages of one client
	loadEnded          bool          // the load is over; longestSilence no longer grows
	disorder           int           // as in counts
	strange            int           // as in counts, for the arrivals so far
	ghosts             int           // clients and keys that should be gone
	missing            int           // presence: members that are absent from a view or an answer
	phantoms           int           // presence: names that are no members
	erase              eraseCounts   // RepeatedReport, Revealed, and what the readers in the end saw
	evidence           evidence
}

// evidence holds the first few cases of each kind of fault, in words.
type evidence map[string][]string

const maxEvidence = 5

func (e evidence) add(kind, format string, args ...any) {
	if len(e[kind]) < maxEvidence {
		e[kind] = append(e[kind], fmt.Sprintf(format, args...))
	}
}

func newJournal() *journal {
	return &journal{
		clients: map[string]*clientRecord{}, attempts: map[item]time.Time{}, accepted: map[item]bool{},
		refused: map[string]int{}, erasures: map[messageKey]*erasure{}, resumed: map[listener]int{}, evidence: evidence{},
	}
}

// clientReady records that a client is connected over a kind of listener and has all its
// subscriptions.
func (j *journal) clientReady(client string, over listener, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clients[client] = &clientRecord{
		listener: over, readyAt: at, lastArrival: at, got: map[item][]int64{}, lastID: map[string]int64{}, lastN: map[string]int{},
		reports: map[messageKey]int{},
	}
}

// clientResumed records a connection that continued after an earlier one.
func (j *journal) clientResumed(over listener) { j.update(func() { j.resumed[over]++ }) }

// readyClients returns the number of ready clients.
func (j *journal) readyClients() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.clients)
}

// loadStarts records the start of the load.
func (j *journal) loadStarts(at time.Time) { j.update(func() { j.lastAccepted = at }) }

// faultStarts records the time of the fault.
func (j *journal) faultStarts(at time.Time) { j.update(func() { j.faultAt = at }) }

// loadEnds records the end of the load.
func (j *journal) loadEnds(at time.Time) {
	j.update(func() { j.withoutPushLocked(at.Sub(j.lastAccepted)); j.loadEnded = true })
}

// longPause is the shortest time without an accepted push that is an interruption.
const longPause = time.Second / 2

// withoutPushLocked records a time without an accepted push.
func (j *journal) withoutPushLocked(d time.Duration) {
	j.longestWithoutPush = max(j.longestWithoutPush, d)
	if d >= longPause {
		j.pauses += d
	}
}

func (j *journal) update(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f()
}

// attempt records the first attempt to push an item.
func (j *journal) attempt(it item, at time.Time) {
	j.update(func() { j.attempts[it] = at })
}

// refuse records an attempt that was not accepted.
func (j *journal) refuse(reason string) { j.update(func() { j.refused[reason]++ }) }

// accept records an accepted push.
func (j *journal) accept(p acceptedPush) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pushes = append(j.pushes, p)
	j.accepted[p.item] = true
	if p.acceptedAt.After(j.lastAccepted) {
		j.withoutPushLocked(p.acceptedAt.Sub(j.lastAccepted))
		j.lastAccepted = p.acceptedAt
	}
}

// message records a message that a client received. Package client has already dropped its
// duplicates, and so has client/js; an event stream has not.
func (j *journal) message(client, queue string, id int64, it item, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	record := j.clients[client]
	if record == nil { // the message arrived before the client was ready
		j.strange++
		j.evidence.add("strange", "%s got %v before it was ready", client, it)
		return
	}
	if !j.loadEnded {
		j.longestSilence = max(j.longestSilence, at.Sub(record.lastArrival))
	}
	record.lastArrival = at
	if first, tried := j.attempts[it]; !tried {
		j.strange++
		j.evidence.add("strange", "%s got %v in %q, which was never pushed", client, it, queue)
	} else if !j.faultAt.IsZero() && record.recovered == 0 && first.After(j.faultAt) {
		record.recovered = at.Sub(j.faultAt)
	}
	if key := (messageKey{queue, id}); record.reports[key] > 0 {
		j.revealLocked(client+", after the report,", key)
	}
	record.got[it] = append(record.got[it], id)
	if len(record.got[it]) > 1 { // count classifies it
		record.lastID[queue] = max(record.lastID[queue], id)
		return
	}
	if id <= record.lastID[queue] || it.n < record.lastN[it.stream] {
		j.disorder++
		j.evidence.add("disorder", "%s got %v in %q with id %d after id %d and number %d",
			client, it, queue, id, record.lastID[queue], record.lastN[it.stream])
	}
	record.lastID[queue], record.lastN[it.stream] = id, it.n
}

// gap records a gap. Only a reset lowers the last id: other gaps may arrive late, among messages
// with higher ids.
func (j *journal) gap(client string, g gap) {
	j.mu.Lock()
	defer j.mu.Unlock()
	record := j.clients[client]
	if record == nil {
		return
	}
	record.gaps = append(record.gaps, g)
	if g.id < g.after {
		record.lastID[g.queue] = g.id
	} else {
		record.lastID[g.queue] = max(record.lastID[g.queue], g.id)
	}
}
