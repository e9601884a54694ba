package queue

import (
	"strconv"
	"sync"
	"time"
)

// storeClock is a lower bound for the store's clock. Ids and generations come from the store's
// clock. After a failover, a replica whose clock is behind would assign ids again that clients have
// seen, and hide new messages from them. Every call therefore passes the minimum that the clock
// must show: the highest reading, plus the time since, on the monotonic clock of this process.
type storeClock struct {
	mu sync.Mutex // guards the fields below
	ms int64      // highest reading in Unix ms, 0 before the first one
	at time.Time  // when it was read

	frozen bool // only in tests: time does not pass after the highest reading
}

// minimum returns the minimum that the store's clock must show, in Unix ms.
func (c *storeClock) minimum() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.minimumLocked()
}

func (c *storeClock) minimumLocked() int64 {
	if c.ms == 0 {
		return 0
	}
	if c.frozen {
		return c.ms
	}
	return c.ms + time.Since(c.at).Milliseconds()
}

// MarshalBinary implements [encoding.BinaryMarshaler]. It returns the minimum at the time when the
// command is written.
func (c *storeClock) MarshalBinary() ([]byte, error) {
	return strconv.AppendInt(nil, c.minimum(), 10), nil
}

// update records a reading of the store's clock.
func (c *storeClock) update(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ms > c.minimumLocked() {
		c.ms, c.at = ms, time.Now()
	}
}
