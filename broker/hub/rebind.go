package hub

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// recentTime is how long a channel counts as bound lately.
const recentTime = time.Minute

// HeldChannel is a channel that is bound to this server, or is being bound.
type HeldChannel struct {
	Name   string
	Recent bool // bound in the last minute
}

// Held returns all channels, system channels included, sorted by name.
func (h *Hub) Held() []HeldChannel {
	all := h.allChannels()
	slices.SortFunc(all, func(a, b *Channel) int { return strings.Compare(a.Name, b.Name) })
	held, now := make([]HeldChannel, len(all)), time.Now()
	for i, c := range all {
		c.mu.Lock()
		held[i] = HeldChannel{c.Name, now.Sub(h.began)-time.Duration(c.boundAt)*time.Second < recentTime}
		c.mu.Unlock()
	}
	return held
}

// HoldAgain adds the channels to this server's own list again. The store may have lost the entries,
// but not the servers of the channels. It skips channels that are not bound: nothing would remove
// their entries.
func (h *Hub) HoldAgain(ctx context.Context, names []string) (err error) {
	h.eachBound(names, func(channels []*Channel) {
		err = errors.Join(err, h.opts.Registry.HoldChannels(ctx, h.opts.ServerID(), namesOf(channels)))
	})
	return err
}

// ListAgain is HoldAgain, and also adds the channels to the list of all channels.
func (h *Hub) ListAgain(ctx context.Context, names []string) (err error) {
	h.eachBound(names, func(channels []*Channel) {
		err = errors.Join(err, h.opts.Registry.ListChannels(ctx, h.opts.ServerID(), namesOf(channels)))
	})
	return err
}

// Rebind binds channels again that the store may have lost, and then compares them with the store.
// It skips channels that are not bound, and leaves the lists of channels to ListAgain. If this
// server was declared dead, old is its former id, and Rebind unbinds the channels from it.
// Otherwise old is empty. Rebind returns the names of the channels that the store had lost, and of
// those that are perhaps not bound.
//
// The order matters: a message that was stored while the store had lost the binding has an id that
// the comparison after the binding sees.
func (h *Hub) Rebind(ctx context.Context, names []string, old string) (restored, failed []string, err error) {
	h.eachBound(names, func(channels []*Channel) {
		back, more, failure := h.rebindLocked(ctx, channels, old)
		restored, failed, err = append(restored, back...), append(failed, more...), errors.Join(err, failure)
	})
	return restored, failed, err
}

// eachBound calls do with those of the channels that are bound, while no call binds or unbinds
// them: first with all that are free, and then with one after the other.
func (h *Hub) eachBound(names []string, do func(channels []*Channel)) {
	var free, busy []*Channel
	for _, name := range names {
		switch c := h.Channel(name); {
		case c == nil: // it binds again when it is used
		case c.tryLock():
			free = append(free, c)
		default:
			busy = append(busy, c)
		}
	}
	doLocked := func(locked []*Channel) {
		defer func() {
			for _, c := range locked {
				<-c.bindLock
			}
		}()
		bound := slices.DeleteFunc(slices.Clone(locked), func(c *Channel) bool { return !c.bound.Load() })
		if len(bound) > 0 {
			do(bound)
		}
	}
	doLocked(free)
	for _, c := range busy {
		c.lockBinding()
		doLocked([]*Channel{c})
	}
}

func namesOf(channels []*Channel) []string {
	names := make([]string, len(channels))
	for i, c := range channels {
		names[i] = c.Name
	}
	return names
}

// tryLock locks bindLock if it is free.
func (c *Channel) tryLock() bool {
	select {
	case c.bindLock <- struct{}{}:
		return true
	default:
		return false
	}
}

// rebindLocked is Rebind for bound channels whose bindLock is locked.
func (h *Hub) rebindLocked(ctx context.Context, channels []*Channel, old string) (restored, failed []string, err error) {
	names := namesOf(channels)
	errs := make([]error, len(names))
	if old != "" {
		var calls sync.WaitGroup
		for i, name := range names {
			calls.Go(func() { errs[i] = h.opts.Registry.UnbindChannel(ctx, old, name) })
		}
		calls.Wait()
	}
	inDoubt := map[string]bool{} // whether a janitor may have removed the channel from the list of channels
	for i, c := range channels {
		inDoubt[names[i]] = old != "" || c.restored
	}
	missing, answers := h.opts.Registry.RebindChannels(ctx, h.opts.ServerID(), names, func(channel string) bool { return inDoubt[channel] })
	for i, err := range answers {
		errs[i] = errors.Join(errs[i], err)
	}
	bound := channels[:0]
	for i, c := range channels {
		if errs[i] != nil {
			c.restored = true // perhaps, by a call without an answer
			failed, err = append(failed, names[i]), errs[i]
			continue
		}
		bound = append(bound, c)
		if c.restored || slices.Contains(missing, names[i]) {
			restored = append(restored, names[i])
		}
		c.restored = false
	}
	if failure := h.compareChunk(ctx, bound); failure != nil { // a later tick compares again
		h.opts.Logger.Warn().Err(failure).Msg("channels that were bound again are not compared; a later tick tries again")
	}
	return restored, failed, err
}
