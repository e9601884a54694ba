package queue

import (
	"strconv"
	"sync"
	"time"
)

// horizon carries the store's clock over a failover. Ids and generations come from that clock; a replica
// whose clock is behind would give ids that clients have seen already, under other messages, and hide new
// ones from them. So every caller brings along what the clock must show by now at least: its last
// reading, and the time since on the own monotonic clock.
type horizon struct {
	mu sync.Mutex // guards the fields below
	ms int64      // Unix milliseconds, 0 before the first reading
	at time.Time
}

// least is what the store's clock shows by now, or a little less.
func (h *horizon) least() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leastLocked()
}

func (h *horizon) leastLocked() int64 {
	if h.ms == 0 {
		return 0
	}
	return h.ms + time.Since(h.at).Milliseconds()
}

// MarshalBinary implements [encoding.BinaryMarshaler]: what least gives when a command is written.
func (h *horizon) MarshalBinary() ([]byte, error) { return strconv.AppendInt(nil, h.least(), 10), nil }

// read takes a reading.
func (h *horizon) read(ms int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ms > h.leastLocked() {
		h.ms, h.at = ms, time.Now()
	}
}
