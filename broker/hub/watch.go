package hub

import "context"

// Watch follows the position of a channel without a subscription. While it is open, this server
// receives the channel's hints, so waiting for a message costs the store nothing.
type Watch struct{ c *Channel }

// Watch opens a Watch. It calls the store if the channel has no subscribers on this server, so do
// not call it on a loop. Close each Watch once.
func (h *Hub) Watch(ctx context.Context, name string) (Watch, error) {
	if pos, ok := h.TryAcquire(name, nil); ok {
		return Watch{pos.Channel}, nil
	}
	pos, err := h.Acquire(ctx, name, nil)
	return Watch{pos.Channel}, err
}

// Last returns the id of the last message that this server knows, or of the channel's position if
// there is none. It has every message that was stored before Watch was called.
func (w Watch) Last() int64 { return w.c.tail.Load().last }

// Changed returns a channel that is closed as soon as Last does not return last.
func (w Watch) Changed(last int64) <-chan struct{} {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.c.changed == nil {
		w.c.changed = make(chan struct{})
	}
	changed := w.c.changed
	if w.Last() != last {
		w.c.notifyWatchesLocked()
	}
	return changed
}

// Close ends the Watch.
func (w Watch) Close() { w.c.hub.Release(w.c) }

// notifyWatchesLocked reports that the tail has another end.
func (c *Channel) notifyWatchesLocked() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}
