package hub

import (
	"sync"
	"time"
)

const (
	// recentInterval is how often the positions of recently bound channels are refreshed.
	recentInterval = time.Minute
	// positionsPerCall is how many positions one store call refreshes.
	positionsPerCall = 512
)

// positionRefresh is the state of the refreshes. A refresh makes the store remember the positions
// of channels with subscribers here. The store forgets other positions some hours after their last
// message. A subscriber whose position is forgotten would receive a gap although nothing is
// missing.
type positionRefresh struct {
	mu       sync.Mutex // guards the fields below
	recent   []*Channel // channels with a position that were bound since the last refresh
	running  bool
	recentAt time.Time // when recent was refreshed
	allAt    time.Time // when all channels were refreshed
}

// add adds a channel that was just bound.
func (r *positionRefresh) add(c *Channel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent = append(r.recent, c)
}

// refreshPositions starts a refresh if one is due.
func (h *Hub) refreshPositions() {
	interval, r, now := h.opts.PositionTTL/4, &h.positions, time.Now()
	if interval == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := now.Sub(r.allAt) >= interval
	if r.running || !all && now.Sub(r.recentAt) < min(recentInterval, interval) {
		return
	}
	list := r.recent
	r.recent, r.recentAt = nil, now
	if all {
		r.allAt, list = now, h.allChannels()
	}
	if len(list) > 0 {
		r.running = true
		h.opts.Pool.Go(func() { h.refreshChannels(list) })
	}
}

// refreshChannels refreshes the positions of the channels. After a failure the rest is tried again
// with the next channels that are bound.
func (h *Hub) refreshChannels(list []*Channel) {
	names := make([]string, 0, positionsPerCall)
	var err error
	for len(list) > 0 && err == nil {
		n := min(len(list), positionsPerCall)
		for _, c := range list[:n] {
			if c.bound.Load() && c.tail.Load().last > 0 {
				names = append(names, c.Name)
			}
		}
		if len(names) > 0 {
			err = h.keepPositions(names)
		}
		if names = names[:0]; err == nil {
			list = list[n:]
		}
	}
	if err != nil {
		h.opts.Logger.Warn().Err(err).Msg("channel positions not refreshed; a later tick tries again")
	}
	h.positions.mu.Lock()
	defer h.positions.mu.Unlock()
	h.positions.running = false
	h.positions.recent = append(h.positions.recent, list...)
}

func (h *Hub) keepPositions(names []string) error {
	ctx := h.context()
	return h.opts.Queue.KeepPositions(ctx, names)
}
