package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"switchboard/bench/swarm"
	"switchboard/bench/system"
)

// book is what was pushed and acknowledged.
type book struct {
	pushed [][]int64 // numbers by channel
	pushes int64
	next   []int64 // by publisher: its next number
}

func newBook(channels, publishers int) book {
	b := book{pushed: make([][]int64, channels)}
	for i := range publishers {
		b.next = append(b.next, int64(i+publishers)) // above 0
	}
	return b
}

// number is the next one of publisher p: they share the numbers by the rest of the division by how many they are.
func (b *book) number(p int) int64 {
	n := b.next[p]
	b.next[p] += int64(len(b.next))
	return n
}

// publishers push to the channels of one trial, each to every so-manieth of them, or all to the only one.
type publishers struct {
	t       *trial
	conns   []system.Publisher
	window  *semaphore.Weighted
	taken   atomic.Int64 // of the window
	given   int64        // back to it
	running atomic.Int64
	stopped atomic.Bool

	mu  sync.Mutex // guards the fields below
	err error      // the first
}

func (t *trial) publishers() (_ *publishers, err error) {
	p := &publishers{t: t, window: semaphore.NewWeighted(int64(max(1, t.size.window)))}
	for range t.size.publishers {
		conn, err := t.running.Publisher()
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.conns = append(p.conns, conn)
	}
	return p, nil
}

func (p *publishers) close() error {
	var errs []error
	for _, conn := range p.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

func (p *publishers) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.stopped.Store(true)
}

func (p *publishers) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// writer is one publisher at work.
type writer struct {
	p        *publishers
	index    int
	channels []int // its own
	turn     int   // the next of channels

	names []string
	data  [][]byte
	sent  []sent
}

// sent is one message that was pushed.
type sent struct {
	channel int
	n       int64
}

func (p *publishers) writer(index int) *writer {
	w := &writer{p: p, index: index}
	channels := p.t.size.channels
	if channels == 1 {
		w.channels = []int{0}
	}
	for c := index; channels > 1 && c < channels; c += len(p.conns) {
		w.channels = append(w.channels, c)
	}
	return w
}

// push sends size messages, in one call if that is more than one, which were to be sent at that time.
func (w *writer) push(ctx context.Context, size int, at int64) error {
	w.names = w.names[:0]
	for len(w.data) < size {
		w.data = append(w.data, nil)
	}
	for i := range size {
		channel := w.channels[w.turn]
		w.turn = (w.turn + 1) % len(w.channels)
		n := w.p.t.book.number(w.index)
		w.names = append(w.names, channelName(channel))
		w.data[i] = swarm.AppendPayload(w.data[i][:0], n, at)
		w.sent = append(w.sent, sent{channel, n})
	}
	conn := w.p.conns[w.index]
	if size == 1 {
		return conn.Publish(ctx, w.names[0], w.data[0])
	}
	return conn.PublishBatch(ctx, w.names, w.data[:size])
}

// start lets every publisher run work in a goroutine of its own.
func (p *publishers) start(ctx context.Context, work func(context.Context, *writer) error) (join func() error) {
	var group sync.WaitGroup
	writers := make([]*writer, len(p.conns))
	p.running.Store(int64(len(writers)))
	for i := range writers {
		w := p.writer(i)
		writers[i] = w
		group.Go(func() {
			if err := work(ctx, w); err != nil {
				p.fail(fmt.Errorf("push: %w", err))
			}
			if p.running.Add(-1) == 0 {
				p.t.swarm.Wake()
			}
		})
	}
	return func() error {
		group.Wait()
		for _, w := range writers {
			for _, s := range w.sent {
				p.t.book.pushed[s.channel] = append(p.t.book.pushed[s.channel], s.n)
			}
			p.t.book.pushes += int64(len(w.sent))
		}
		return p.failed()
	}
}
