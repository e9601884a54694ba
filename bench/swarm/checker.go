package swarm

import (
	"fmt"
	"slices"
)

// maxFaults is the number of faults that are described. All are counted.
const maxFaults = 10

// checker records what the subscribers of each channel received, in order, and the faults.
type checker struct {
	ids    [][]int64 // by channel, as the first subscriber received them
	faults []string  // descriptions of the first maxFaults
	wrong  int       // number of faults
	// publishers is the number of publishers of one channel, see Options.Publishers. Their messages
	// may be interleaved in any order.
	publishers int64
}

// progress is how far one subscriber has received the messages of its channel.
type progress struct {
	channel  int32
	seen     int32 // messages received
	diverged bool  // it differed from ids once; later messages are only counted
}

// check checks that id is the next id for p. It calls describe only for a fault.
func (c *checker) check(p *progress, id int64, describe func() string) {
	ids := c.ids[p.channel]
	switch n := int(p.seen); {
	case p.diverged:
	case n < len(ids) && ids[n] != id:
		p.diverged = true
		c.fault("%s: message %d has id %d, others have %d there", describe(), n+1, id, ids[n])
	case n == len(ids) && n > 0 && id <= ids[n-1] && c.publishers <= 1:
		p.diverged = true
		c.fault("%s: message %d has id %d, after %d", describe(), n+1, id, ids[n-1])
	case n == len(ids):
		c.ids[p.channel] = append(ids, id)
	}
	p.seen++
}

func (c *checker) fault(format string, args ...any) {
	if c.wrong++; len(c.faults) < maxFaults {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

// compare compares the ids of a channel with the ids that were pushed to it, in any order.
func (c *checker) compare(name string, channel int, pushed []int64) {
	want := slices.Sorted(slices.Values(pushed))
	c.checkPublisherOrder(name, c.ids[channel])
	got := slices.Sorted(slices.Values(c.ids[channel]))
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			c.fault("channel %s: id %d was accepted and not delivered, and %d more", name, want[i], len(want)-i-1)
			return
		case i >= len(want):
			c.fault("channel %s: id %d was delivered and never pushed, and %d more", name, got[i], len(got)-i-1)
			return
		case got[i] != want[i]:
			c.fault("channel %s: message %d was pushed with id %d and delivered as %d", name, i+1, want[i], got[i])
			return
		}
	}
}

// checkPublisherOrder checks that the messages of each publisher arrived in its order.
func (c *checker) checkPublisherOrder(name string, ids []int64) {
	if c.publishers <= 1 {
		return // checked at each message
	}
	last := make([]int64, c.publishers)
	for i, id := range ids {
		publisher := id % c.publishers
		if id <= last[publisher] {
			c.fault("channel %s: message %d has id %d, after %d of the same publisher", name, i+1, id, last[publisher])
			return
		}
		last[publisher] = id
	}
}
