package hub

import (
	"sync"
	"time"
)

const (
	// keepSoon is how long after its binding a channel's position is kept for the first time, at
	// most.
	keepSoon = time.Minute
	// keepAtOnce is how many positions are kept by one call.
	keepAtOnce = 512
)

// keeping has the store remember the positions of channels that have subscribers here. It forgets
// those of others some hours after their last message. A subscriber whose position it forgot would
// be told of a gap where nothing is missing.
type keeping struct {
	mu      sync.Mutex // guards the fields below
	bound   []*Channel // since they were kept last, with a position
	running bool
	soon    time.Time // when those were kept
	all     time.Time // when all were
}

// add notes a channel that was bound.
func (k *keeping) add(c *Channel) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bound = append(k.bound, c)
}

// keep begins to keep positions if that is due.
func (h *Hub) keep() {
	every, k, now := h.opts.PositionTTL/4, &h.keeping, time.Now()
	if every == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all := now.Sub(k.all) >= every
	if k.running || !all && now.Sub(k.soon) < min(keepSoon, every) {
		return
	}
	list := k.bound
	k.bound, k.soon = nil, now
	if all {
		k.all, list = now, h.snapshot()
	}
	if len(list) > 0 {
		k.running = true
		h.opts.Pool.Go(func() { h.keepThese(list) })
	}
}

// keepThese keeps the positions of channels. Those that fail are tried again with the ones that are
// bound next.
func (h *Hub) keepThese(list []*Channel) {
	names := make([]string, 0, keepAtOnce)
	var err error
	for len(list) > 0 && err == nil {
		n := min(len(list), keepAtOnce)
		for _, c := range list[:n] {
			if c.bound.Load() && c.tail.Load().last > 0 {
				names = append(names, c.Name)
			}
		}
		if len(names) > 0 {
			err = h.keepNames(names)
		}
		if names = names[:0]; err == nil {
			list = list[n:]
		}
	}
	if err != nil {
		h.opts.Logger.Warn().Err(err).Msg("positions of channels are not kept; the next minute tries again")
	}
	h.keeping.mu.Lock()
	defer h.keeping.mu.Unlock()
	h.keeping.running = false
	h.keeping.bound = append(h.keeping.bound, list...)
}

func (h *Hub) keepNames(names []string) error {
	ctx, cancel := h.context()
	defer cancel()
	return h.opts.Queue.KeepPositions(ctx, names)
}
