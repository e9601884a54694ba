package hub

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// watchInterval is the mean interval at which a watched channel is read while it has no subscribers
// on this server, and so no hints of messages that others store.
const watchInterval = 250 * time.Millisecond

// Watch follows the position of a channel without a subscription. The registry does not know it: a
// watched channel has no subscriber, and is not occupied.
type Watch struct{ w *watched }

// watches are the watched channels.
type watches struct {
	count atomic.Int32 // len(byName): without a Watch, a message costs one load

	mu     sync.Mutex // guards byName and watched.refs
	byName map[string]*watched
}

// watched is a channel that has a Watch.
type watched struct {
	hub  *Hub
	name string
	refs int
	stop context.CancelFunc // ends follow

	mu      sync.Mutex // guards the fields below
	last    int64
	changed chan struct{} // closed when last changes; nil if nothing waits for it
}

// Watch opens a Watch. It calls the store if the channel has no subscribers on this server, so do
// not call it on a loop. Close each Watch once.
func (h *Hub) Watch(ctx context.Context, name string) (Watch, error) {
	w := Watch{h.addWatch(name)}
	if err := w.w.update(ctx); err != nil {
		w.Close()
		return Watch{}, err
	}
	return w, nil
}

// addWatch returns the watched channel with one more reference.
func (h *Hub) addWatch(name string) *watched {
	h.watches.mu.Lock()
	defer h.watches.mu.Unlock()
	w := h.watches.byName[name]
	if w == nil {
		if h.watches.byName == nil {
			h.watches.byName = make(map[string]*watched)
		}
		ctx, stop := context.WithCancel(context.Background())
		w = &watched{hub: h, name: name, stop: stop}
		h.watches.byName[name] = w
		h.watches.count.Add(1)
		go w.follow(ctx)
	}
	w.refs++
	return w
}

// Close ends the Watch.
func (w Watch) Close() {
	all := &w.w.hub.watches
	all.mu.Lock()
	defer all.mu.Unlock()
	if w.w.refs--; w.w.refs == 0 {
		delete(all.byName, w.w.name)
		all.count.Add(-1)
		w.w.stop()
	}
}

// WatchCount returns the number of open Watches of a channel.
func (h *Hub) WatchCount(name string) int {
	h.watches.mu.Lock()
	defer h.watches.mu.Unlock()
	if w := h.watches.byName[name]; w != nil {
		return w.refs
	}
	return 0
}

// Last returns the id of the last message that this server knows, or of the channel's position if
// there is none. It has every message that was stored before Watch was called.
func (w Watch) Last() int64 {
	w.w.mu.Lock()
	defer w.w.mu.Unlock()
	return w.w.last
}

// Changed returns a channel that is closed as soon as Last does not return last.
func (w Watch) Changed(last int64) <-chan struct{} {
	w.w.mu.Lock()
	defer w.w.mu.Unlock()
	if w.w.changed == nil {
		w.w.changed = make(chan struct{})
	}
	changed := w.w.changed
	if w.w.last != last {
		w.w.notifyLocked()
	}
	return changed
}

// Appended reports the id of a message that this server has stored to the Watches of its channel.
func (h *Hub) Appended(name string, id int64) {
	if w := h.watchedChannel(name); w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.setLocked(max(id, w.last))
	}
}

// moveWatches sets the position of the Watches of the channel to the end of its tail.
func (c *Channel) moveWatches() {
	if w := c.hub.watchedChannel(c.Name); w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.setLocked(c.tail.Load().last)
	}
}

// watchedChannel returns the watched channel of a name, or nil.
func (h *Hub) watchedChannel(name string) *watched {
	if h.watches.count.Load() == 0 {
		return nil
	}
	h.watches.mu.Lock()
	defer h.watches.mu.Unlock()
	return h.watches.byName[name]
}

func (w *watched) setLocked(last int64) {
	if w.last != last {
		w.last = last
		w.notifyLocked()
	}
}

// notifyLocked wakes the callers that wait for another position.
func (w *watched) notifyLocked() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// follow updates the position until ctx ends. It tries again after an error.
func (w *watched) follow(ctx context.Context) {
	w.keepPosition(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchInterval/2 + rand.N(watchInterval)):
			_ = w.update(ctx)
		}
	}
}

// keepPosition makes the store remember the position, as it does for channels with subscribers. The
// next Watch of the channel tries again after an error.
func (w *watched) keepPosition(ctx context.Context) {
	if w.hub.opts.PositionTTL > 0 {
		_ = w.hub.opts.Queue.KeepPositions(ctx, []string{w.name})
	}
}

// update sets the position to that of the channel on this server, which receives hints, or else to
// that of the store. It may be lower than before: the store has lost messages.
func (w *watched) update(ctx context.Context) error {
	if c := w.hub.Channel(w.name); c != nil && c.bound.Load() {
		c.moveWatches()
		return nil
	}
	w.mu.Lock()
	before := w.last
	w.mu.Unlock()
	page, err := w.hub.opts.Queue.ReadChannel(ctx, w.name, 0, 0)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == before { // else it is newer than the page
		w.setLocked(page.Last)
	}
	return nil
}
