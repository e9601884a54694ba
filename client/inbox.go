package client

import (
	"context"
	"sync"
)

const (
	// inboxSoft is how many bytes of messages may wait for the callbacks before reading
	// stops.
	inboxSoft = 1 << 20
	// inboxHard is the same while calls are pending: a callback that waits for an answer
	// must be able to get it, so reading goes on for a while longer.
	inboxHard = 16 << 20
	// itemCost stands for the memory of an item beside its bytes.
	itemCost = 128
)

// item is one callback to come.
type item struct {
	message Message
	do      func() // called in place of OnMessage
	gap     bool   // message holds channel and id of a gap
	size    int
	epoch   int // Client.epoch when the item came
}

// queued reports whether the item moves the position of the client queue.
func (it *item) queued() bool {
	return it.message.Channel == "" && (it.do == nil || it.gap)
}

// inbox is the list of items between the reader and the callbacks.
type inbox struct {
	ready chan struct{} // one slot: there are items, or it was closed
	room  chan struct{} // one slot: look again whether it is full

	mu     sync.Mutex // guards the fields below
	items  []item
	bytes  int // of items and of those taken but not released
	closed bool
}

func newInbox() *inbox {
	return &inbox{ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func notify(slot chan struct{}) {
	select {
	case slot <- struct{}{}:
	default:
	}
}

func (b *inbox) put(it item) {
	it.size += itemCost
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, it)
	b.bytes += it.size
	notify(b.ready)
}

// full reports whether the reader must wait for room.
func (b *inbox) full(callsPending func() bool) bool {
	b.mu.Lock()
	bytes := b.bytes
	b.mu.Unlock()
	return bytes >= inboxSoft && (bytes >= inboxHard || !callsPending())
}

// poke makes the reader look again.
func (b *inbox) poke() { notify(b.room) }

// take waits for items and returns all of them; none when ctx has ended, or when the
// inbox is closed and empty. spare is reused.
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

// release gives back the room of an item that is done with.
func (b *inbox) release(size int) {
	b.mu.Lock()
	b.bytes -= size
	below := b.bytes < inboxSoft && b.bytes+size >= inboxSoft
	b.mu.Unlock()
	if below {
		notify(b.room)
	}
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	notify(b.ready)
}
