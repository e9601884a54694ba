package hub

import (
	"sync"
	"time"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// A channel without messages has the position 0. If a client got 0 and resumed with it much later,
// messages could have been published and forgotten in between, and it would miss them unnoticed.
// So the client gets the current moment instead, as an id that no message has. The broker takes that
// id for 0 only while the store remembers every message since.
const (
	// vacancy is the last id of a millisecond, which only the 4096th message in it would get.
	emptyChannelBits = idsPerMS - 1
	// idsPerMS is how many ids fit in a millisecond.
	idsPerMS = 4096
	// vacancyMargin sets the moment back: it must be below the id of any message that comes,
	// whatever the clocks of several stores show.
	clockMargin = 10 * time.Minute
)

// storeClock is what the store's clock showed at the last read.
type storeClock struct {
	mu sync.Mutex // guards the fields below
	ms int64      // Unix ms, 0 before the first reading
	at time.Time
}

func (c *storeClock) set(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ms > c.ms {
		c.ms, c.at = ms, time.Now()
	}
}

// times are the last reading, and what the clock shows by now; ok is false before the first
// reading.
func (c *storeClock) times() (last, now time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last = time.UnixMilli(c.ms)
	return last, last.Add(time.Since(c.at)), c.ms > 0
}

// shown returns the id that a client gets for the position cursor.
func (h *Hub) resumeID(c *Channel, cursor int64) int64 {
	if cursor != 0 || h.opts.PositionTTL == 0 || wire.IsSystem(c.Name) || c.tail.Load().last != 0 {
		return cursor
	}
	// The moment of the last reading, and not of now: what came since may not be known here.
	last, _, ok := h.clock.times()
	if !ok {
		return cursor
	}
	return queue.IDAt(last.Add(-clockMargin)) | emptyChannelBits
}

// ResumeID returns the position to tell the client: the last id that was written, or skipped as a
// declared gap, and in an empty channel the moment.
func (s *Subscription) ResumeID() int64 { return s.Channel.hub.resumeID(s.Channel, s.cursor) }

// ResumeCursor is what after stands for, the id that a client says it has seen last: 0 for a moment when
// the channel was empty, if the store has forgotten nothing since. An older moment stays as it is,
// and no position is known by that id.
func (h *Hub) ResumeCursor(after *int64) *int64 {
	if after == nil || *after&emptyChannelBits != emptyChannelBits || h.opts.PositionTTL == 0 {
		return after
	}
	if _, now, ok := h.clock.times(); !ok || *after < queue.IDAt(now.Add(-h.opts.PositionTTL)) {
		return after
	}
	return new(int64)
}
