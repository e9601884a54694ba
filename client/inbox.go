package client

import (
	"context"
	"sync"

	"switchboard/internal/wire"
)

const (
	// softLimit is how many bytes of messages may wait for the callbacks before the reader stops.
	softLimit = 1 << 20
	// hardLimit is the limit while calls are pending. A callback may wait for an answer, which
	// arrives only if the reader continues.
	hardLimit = 16 << 20
	// itemOverhead is about the memory of an item besides its bytes.
	itemOverhead = 128
)

// item is one queued callback.
type item struct {
	message Message
	do      func()           // called instead of OnMessage, if not nil
	gap     bool             // message has the channel and the id of a gap
	loaded  bool             // the data of Load has the message: only its changes of fields count
	view    *view            // the fields that message changes, or nil
	state   *wire.StateEvent // of message; not nil if view is not nil
	size    int
	epoch   int // Client.epoch when the item was queued
}

// ofClientQueue reports whether the item moves the position of the client queue.
func (it *item) ofClientQueue() bool {
	return it.message.Channel == "" && (it.do == nil || it.gap)
}

// inbox is the list of items between the reader and the callbacks.
type inbox struct {
	ready   chan struct{} // one slot: items were added, or the inbox was closed
	recheck chan struct{} // one slot: the reader should check full again

	mu     sync.Mutex // guards the fields below
	items  []item
	bytes  int // of items, and of items that are taken and not released
	closed bool
}

func newInbox() *inbox {
	return &inbox{ready: make(chan struct{}, 1), recheck: make(chan struct{}, 1)}
}

// signal fills a one-slot channel. It never blocks.
func signal(slot chan struct{}) {
	select {
	case slot <- struct{}{}:
	default:
	}
}

func (b *inbox) put(it item) {
	it.size += itemOverhead
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, it)
	b.bytes += it.size
	signal(b.ready)
}

// full reports whether the reader must wait.
func (b *inbox) full(callsPending func() bool) bool {
	b.mu.Lock()
	bytes := b.bytes
	b.mu.Unlock()
	return bytes >= softLimit && (bytes >= hardLimit || !callsPending())
}

// wakeReader makes the reader check full again.
func (b *inbox) wakeReader() { signal(b.recheck) }

// take waits for items and returns all of them. It returns none if ctx has ended, or if the inbox
// is closed and empty. take reuses the memory of spare.
func (b *inbox) take(ctx context.Context, spare []item) []item {
	for {
		b.mu.Lock()
		items, closed := b.items, b.closed
		if len(items) > 0 {
			b.items = spare
			b.mu.Unlock()
			return items
		}
		b.mu.Unlock()
		if closed {
			return nil
		}
		select {
		case <-b.ready:
		case <-ctx.Done():
			return nil
		}
	}
}

// release subtracts the size of an item whose callback has returned.
func (b *inbox) release(size int) {
	b.mu.Lock()
	b.bytes -= size
	below := b.bytes < softLimit && b.bytes+size >= softLimit
	b.mu.Unlock()
	if below {
		signal(b.recheck)
	}
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	signal(b.ready)
}
