package main

import (
	"fmt"
	"sync"
	"time"
)

// item is one message of a stream: what its payload says.
type item struct {
	stream string
	n      int // from 1
}

// push is one that was accepted.
type push struct {
	item
	queue string           // that it is in at its addressees: a channel, or "" for the client's own
	to    []string         // clients that it is for
	ids   map[string]int64 // by client, as the answer had them
	first time.Time        // when it was tried first
	acked time.Time        // when it was accepted
}

// gap is one that a client was told.
type gap struct {
	queue     string
	after, id int64
	at        time.Time
}

// covers says whether the gap declares a message that is gone. A reset, which goes back,
// declares all above its position that had been acknowledged by then.
func (g gap) covers(queue string, id int64, acked time.Time) bool {
	switch {
	case g.queue != queue:
		return false
	case g.id < g.after:
		return id > g.id && acked.Before(g.at)
	}
	return g.after < id && id <= g.id
}

// seat is what one client has seen.
type seat struct {
	since     time.Time        // when all that it follows was confirmed
	got       map[item][]int64 // the ids that it came with; more than one is one too many
	lastID    map[string]int64 // by queue
	lastN     map[string]int   // by stream
	gaps      []gap
	arrived   time.Time     // the last message
	recovered time.Duration // from the fault to the first message that was pushed after it
}

// book holds what was acknowledged against what arrived. It believes nobody: brokers and
// clients are asked for nothing, publishers and callbacks enter what they saw themselves.
type book struct {
	mu       sync.Mutex // guards the fields below
	seats    map[string]*seat
	pushes   []push
	attempts map[item]time.Time // the first of each
	accepted map[item]bool
	refused  map[string]int // attempts that failed, by reason

	injected time.Time // zero before the fault
	lastAck  time.Time
	longest  time.Duration // without an accepted push
	silence  time.Duration // the longest between two messages of one client
	closed   bool          // the load is over: silence no longer counts
	disorder int
	strange  int
	ghosts   int
	missing  int // of presence
	phantoms int // likewise
	evidence evidence
}

// evidence is the first few cases of each kind, in words.
type evidence map[string][]string

const mostEvidence = 5

func (e evidence) add(kind, format string, args ...any) {
	if len(e[kind]) < mostEvidence {
		e[kind] = append(e[kind], fmt.Sprintf(format, args...))
	}
}

func newBook() *book {
	return &book{
		seats: map[string]*seat{}, attempts: map[item]time.Time{}, accepted: map[item]bool{},
		refused: map[string]int{}, evidence: evidence{},
	}
}

// confirm notes that a client is connected and follows all that it is to follow.
func (b *book) confirm(client string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seats[client] = &seat{
		since: at, arrived: at, got: map[item][]int64{}, lastID: map[string]int64{}, lastN: map[string]int{},
	}
}

// confirmed is how many clients are.
func (b *book) confirmed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seats)
}

// begin is the start of the load, inject the moment of the fault, end the last push.
func (b *book) begin(at time.Time)  { b.mark(func() { b.lastAck = at }) }
func (b *book) inject(at time.Time) { b.mark(func() { b.injected = at }) }
func (b *book) end(at time.Time) {
	b.mark(func() { b.longest, b.closed = max(b.longest, at.Sub(b.lastAck)), true })
}

func (b *book) mark(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// attempt notes the first attempt to push an item.
func (b *book) attempt(it item, at time.Time) {
	b.mark(func() { b.attempts[it] = at })
}

// refuse notes an attempt that was not answered with an acceptance.
func (b *book) refuse(reason string) { b.mark(func() { b.refused[reason]++ }) }

// accept notes an acknowledged push.
func (b *book) accept(p push) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pushes = append(b.pushes, p)
	b.accepted[p.item] = true
	if p.acked.After(b.lastAck) {
		b.longest = max(b.longest, p.acked.Sub(b.lastAck))
		b.lastAck = p.acked
	}
}

// message notes what a client was given behind its filter.
func (b *book) message(client, queue string, id int64, it item, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.seats[client]
	if s == nil { // it was given something before it was ready, so this is not a client of ours
		b.strange++
		b.evidence.add("strange", "%s, who follows nothing yet, got %v", client, it)
		return
	}
	if !b.closed {
		b.silence = max(b.silence, at.Sub(s.arrived))
	}
	s.arrived = at
	if first, tried := b.attempts[it]; !tried {
		b.strange++
		b.evidence.add("strange", "%s got %v in %q, which nobody pushed", client, it, queue)
	} else if !b.injected.IsZero() && s.recovered == 0 && first.After(b.injected) {
		s.recovered = at.Sub(b.injected)
	}
	s.got[it] = append(s.got[it], id)
	if len(s.got[it]) > 1 { // count says what that is
		s.lastID[queue] = max(s.lastID[queue], id)
		return
	}
	if id <= s.lastID[queue] || it.n < s.lastN[it.stream] {
		b.disorder++
		b.evidence.add("disorder", "%s got %v in %q with id %d behind id %d and number %d",
			client, it, queue, id, s.lastID[queue], s.lastN[it.stream])
	}
	s.lastID[queue], s.lastN[it.stream] = id, it.n
}

// gap notes what a client was told to be gone. Only a reset takes the queue back to its id: any other
// may be told late, among messages that are further on.
func (b *book) gap(client string, g gap) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.seats[client]
	if s == nil {
		return
	}
	s.gaps = append(s.gaps, g)
	if g.id < g.after {
		s.lastID[g.queue] = g.id
	} else {
		s.lastID[g.queue] = max(s.lastID[g.queue], g.id)
	}
}
