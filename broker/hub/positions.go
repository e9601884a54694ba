package hub

import (
	"sync"
	"time"
)

const (
	// keepSoon is how long after its binding a channel's position is kept for the first time, at
	// most.
	recentEvery = time.Minute
	// keepAtOnce is how many positions are kept by one call.
	positionsPerCall = 512
)

// keeping has the store remember the positions of channels that have subscribers here. It forgets
// those of others some hours after their last message. A subscriber whose position it forgot would
// be told of a gap where nothing is missing.
type positionRefresh struct {
	mu       sync.Mutex // guards the fields below
	recent   []*Channel // since they were kept last, with a position
	running  bool
	recentAt time.Time // when those were kept
	allAt    time.Time // when all were
}

// add notes a channel that was bound.
func (k *positionRefresh) add(c *Channel) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recent = append(k.recent, c)
}

// keep begins to keep positions if that is due.
func (h *Hub) refreshPositions() {
	every, k, now := h.opts.PositionTTL/4, &h.positions, time.Now()
	if every == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all := now.Sub(k.allAt) >= every
	if k.running || !all && now.Sub(k.recentAt) < min(recentEvery, every) {
		return
	}
	list := k.recent
	k.recent, k.recentAt = nil, now
	if all {
		k.allAt, list = now, h.allChannels()
	}
	if len(list) > 0 {
		k.running = true
		h.opts.Pool.Go(func() { h.refreshChannels(list) })
	}
}

// keepThese keeps the positions of channels. Those that fail are tried again with the ones that are
// bound next.
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
		h.opts.Logger.Warn().Err(err).Msg("positions of channels are not kept; the next minute tries again")
	}
	h.positions.mu.Lock()
	defer h.positions.mu.Unlock()
	h.positions.running = false
	h.positions.recent = append(h.positions.recent, list...)
}

func (h *Hub) keepPositions(names []string) error {
	ctx, cancel := h.context()
	defer cancel()
	return h.opts.Queue.KeepPositions(ctx, names)
}
