package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"switchboard/bench/swarm"
	"switchboard/bench/system"
)

// pushLog records the pushed messages.
type pushLog struct {
	numbers [][]int64 // message numbers by channel
	pushes  int64
	next    []int64 // next number by publisher
}

func newPushLog(channels, publishers int) pushLog {
	l := pushLog{numbers: make([][]int64, channels)}
	for i := range publishers {
		l.next = append(l.next, int64(i+publishers)) // numbers start above 0
	}
	return l
}

// nextNumber returns the next number of publisher p. The remainder of a number divided by the
// number of publishers identifies the publisher.
func (l *pushLog) nextNumber(p int) int64 {
	n := l.next[p]
	l.next[p] += int64(len(l.next))
	return n
}

// publishers push to the channels of one trial. A single channel is shared by all publishers. With
// more channels, publisher i of n has the channels i, i+n, i+2n and so on.
type publishers struct {
	t        *trial
	conns    []system.Publisher
	window   *semaphore.Weighted
	acquired atomic.Int64 // acquired from the window
	released int64        // released to the window
	running  atomic.Int64
	stopped  atomic.Bool

	mu  sync.Mutex // guards the fields below
	err error      // the first error
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

// publisher is one publisher with its own connection.
type publisher struct {
	all      *publishers
	index    int
	channels []int // its channels
	next     int   // index of the next channel

	names []string
	data  [][]byte
	sent  []sentMessage
}

// sentMessage identifies one pushed message.
type sentMessage struct {
	channel int
	n       int64
}

func (p *publishers) newPublisher(index int) *publisher {
	w := &publisher{all: p, index: index}
	channels := p.t.size.channels
	if channels == 1 {
		w.channels = []int{0}
	}
	for c := index; channels > 1 && c < channels; c += len(p.conns) {
		w.channels = append(w.channels, c)
	}
	return w
}

// push pushes size messages, in one call if there are several. at is the time when they were due, 0
// for none.
func (w *publisher) push(ctx context.Context, size int, at int64) error {
	w.names = w.names[:0]
	for len(w.data) < size {
		w.data = append(w.data, nil)
	}
	for i := range size {
		channel := w.channels[w.next]
		w.next = (w.next + 1) % len(w.channels)
		n := w.all.t.pushLog.nextNumber(w.index)
		w.names = append(w.names, channelName(channel))
		w.data[i] = swarm.AppendSized(w.data[i][:0], cmp.Or(w.all.t.size.bytes, swarm.PayloadSize), n, at)
		w.sent = append(w.sent, sentMessage{channel, n})
	}
	conn := w.all.conns[w.index]
	if size == 1 {
		return conn.Publish(ctx, w.names[0], w.data[0])
	}
	return conn.PublishBatch(ctx, w.names, w.data[:size])
}

// start calls work for every publisher, each in its own goroutine. join waits for them and adds
// their messages to the log.
func (p *publishers) start(ctx context.Context, work func(context.Context, *publisher) error) (join func() error) {
	var group sync.WaitGroup
	workers := make([]*publisher, len(p.conns))
	p.running.Store(int64(len(workers)))
	for i := range workers {
		w := p.newPublisher(i)
		workers[i] = w
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
		for _, w := range workers {
			for _, s := range w.sent {
				p.t.pushLog.numbers[s.channel] = append(p.t.pushLog.numbers[s.channel], s.n)
			}
			p.t.pushLog.pushes += int64(len(w.sent))
		}
		return p.failed()
	}
}
