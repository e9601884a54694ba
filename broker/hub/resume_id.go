package hub

import (
	"sync"
	"time"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// The position of a channel without messages is 0. A client that resumed from 0 much later could
// miss messages that were published and forgotten in between, without noticing. So the client gets
// an id that encodes the current time and that no message has. The hub treats this id as 0 only
// while the store remembers all messages since that time.
const (
	// emptyChannelBits are the low bits of such an id. Of the message ids, only the id of the 4096th
	// message in one millisecond has them.
	emptyChannelBits = idsPerMS - 1
	// idsPerMS is how many ids one millisecond has.
	idsPerMS = 4096
	// clockMargin is subtracted from the time, so that the id is below the id of any later message,
	// even if the clocks of several stores differ.
	clockMargin = 10 * time.Minute
)

// storeClock estimates the store's clock from the last time that the store returned.
type storeClock struct {
	mu sync.Mutex // guards the fields below
	ms int64      // Unix ms; 0 before the first read
	at time.Time
}

func (c *storeClock) set(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ms > c.ms {
		c.ms, c.at = ms, time.Now()
	}
}

// times returns the last time that the store returned and the estimated current time. ok is false
// before the first read.
func (c *storeClock) times() (last, now time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last = time.UnixMilli(c.ms)
	return last, last.Add(time.Since(c.at)), c.ms > 0
}

// StoreTime returns the estimated time on the store's clock, in Unix ms. It is 0 before the first
// read of the store, and never later than the store's clock.
func (h *Hub) StoreTime() int64 {
	_, now, ok := h.clock.times()
	if !ok {
		return 0
	}
	return now.UnixMilli()
}

// SetStoreTime reports a time that the store has returned, in Unix ms.
func (h *Hub) SetStoreTime(ms int64) { h.clock.set(ms) }

// resumeID returns the id that a client receives for the position cursor.
func (h *Hub) resumeID(c *Channel, cursor int64) int64 {
	internal := wire.IsSystem(c.Name) && c.Name != wire.AllChannel // no client resumes it
	if cursor != 0 || h.opts.PositionTTL == 0 || internal {
		return cursor
	}
	if t := c.tail.Load(); t.last != 0 {
		if t.base != 0 || len(t.messages) == 0 {
			return cursor
		}
		return t.messages[0].ID/idsPerMS*idsPerMS - 1 // the channel was empty before its first message
	}
	// Use the time of the last read, not the current time: this server may not know messages that
	// were stored since.
	last, _, ok := h.clock.times()
	if !ok {
		return cursor
	}
	return queue.IDAt(last.Add(-clockMargin)) | emptyChannelBits
}

// EmptyIDValid is how long an id of EmptyID can be used.
const EmptyIDValid = clockMargin / 2

// EmptyID returns an id for the pages of a channel that had no message at a time, in Unix ms. It is
// below the id of each later message. Within EmptyIDValid it is not below the position that a
// subscriber of the channel receives, since positions keep the whole clockMargin.
func (h *Hub) EmptyID(readAt int64) int64 {
	if h.opts.PositionTTL == 0 || readAt == 0 {
		return 0
	}
	return queue.IDAt(time.UnixMilli(readAt).Add(-EmptyIDValid)) | emptyChannelBits
}

// ResumeID returns the position to send to the client: the last id that was written or skipped by
// a gap, or an id that encodes the time if the channel is empty.
func (s *Subscription) ResumeID() int64 { return s.Channel.hub.resumeID(s.Channel, s.cursor) }

// ResumeCursor returns the cursor for after, the id that a client resumes with. It returns 0 for an
// id of an empty channel if the store remembers all messages since then. It returns an older id of
// an empty channel unchanged; the store does not know that position, so the client receives a gap.
func (h *Hub) ResumeCursor(after *int64) *int64 {
	if after == nil || *after&emptyChannelBits != emptyChannelBits || h.opts.PositionTTL == 0 {
		return after
	}
	if _, now, ok := h.clock.times(); !ok || *after < queue.IDAt(now.Add(-h.opts.PositionTTL)) {
		return after
	}
	return new(int64)
}
