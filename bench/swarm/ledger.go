package swarm

import (
	"fmt"
	"slices"
)

// maxFaults is how many faults are described; all are counted.
const maxFaults = 10

// ledger is what the subscribers of each channel received, in order, and what was wrong.
type ledger struct {
	ids    [][]int64 // by channel: as whoever came first saw them
	faults []string  // the first maxFaults
	wrong  int       // all faults
	// writers is how many publish to one channel at a time, see Options.Writers: between them no order is promised.
	writers int64
}

// place is one subscriber's position.
type place struct {
	channel int32
	seen    int32 // messages received
	astray  bool  // it differed from the ledger once; what follows is only counted
}

// note checks that id is what comes next at p. who is asked only when it is not.
func (l *ledger) note(p *place, id int64, who func() string) {
	ids := l.ids[p.channel]
	switch n := int(p.seen); {
	case p.astray:
	case n < len(ids) && ids[n] != id:
		p.astray = true
		l.fault("%s: message %d has id %d, others have %d there", who(), n+1, id, ids[n])
	case n == len(ids) && n > 0 && id <= ids[n-1] && l.writers <= 1:
		p.astray = true
		l.fault("%s: message %d has id %d, after %d", who(), n+1, id, ids[n-1])
	case n == len(ids):
		l.ids[p.channel] = append(ids, id)
	}
	p.seen++
}

func (l *ledger) fault(format string, args ...any) {
	if l.wrong++; len(l.faults) < maxFaults {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// settle checks a channel's ledger against the ids that were pushed to it, in any order.
func (l *ledger) settle(name string, channel int, pushed []int64) {
	want := slices.Sorted(slices.Values(pushed))
	l.inOrder(name, l.ids[channel])
	got := slices.Sorted(slices.Values(l.ids[channel]))
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			l.fault("channel %s: id %d was accepted and reached nobody, nor %d more", name, want[i], len(want)-i-1)
			return
		case i >= len(want):
			l.fault("channel %s: id %d was delivered and never pushed, and %d more", name, got[i], len(got)-i-1)
			return
		case got[i] != want[i]:
			l.fault("channel %s: message %d was pushed with id %d and delivered as %d", name, i+1, want[i], got[i])
			return
		}
	}
}

// inOrder checks that the messages of each writer came as he wrote them.
func (l *ledger) inOrder(name string, ids []int64) {
	if l.writers <= 1 {
		return // checked at each message
	}
	last := make([]int64, l.writers)
	for i, id := range ids {
		w := id % l.writers
		if id <= last[w] {
			l.fault("channel %s: message %d has id %d, after %d of the same publisher", name, i+1, id, last[w])
			return
		}
		last[w] = id
	}
}
