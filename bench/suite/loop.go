package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"switchboard/bench/swarm"
)

// loop is a closed loop for d, until everybody has received everything. It returns how many pushes
// that were.
func (p *publishers) loop(ctx context.Context, d time.Duration) (pushes int64, err error) {
	end := time.Now().Add(d)
	return p.work(ctx, func(ctx context.Context, w *writer) error {
		size := max(1, p.t.size.batch)
		for time.Now().Before(end) && !p.stopped.Load() {
			if err := p.take(ctx, size); err != nil {
				return err
			}
			if err := w.push(ctx, size, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// each pushes one message to every channel. Where nobody is connected nothing is awaited.
func (p *publishers) each(ctx context.Context, connected bool) error {
	once := func(ctx context.Context, w *writer) error {
		for range w.channels {
			if connected {
				if err := p.take(ctx, 1); err != nil {
					return err
				}
			}
			if err := w.push(ctx, 1, 0); err != nil {
				return err
			}
		}
		return nil
	}
	if connected {
		_, err := p.work(ctx, once)
		return err
	}
	return p.start(ctx, once)()
}

// oneAtATime pushes as often as the scenario says, the next when everybody has the last, but begins none when its
// time is over. It returns how many that were.
func (p *publishers) oneAtATime(ctx context.Context) (pushes int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := p.t
	turn := make(chan struct{}, 1)
	join := p.start(ctx, func(ctx context.Context, w *writer) error {
		for range turn {
			if err := w.push(ctx, 1, 0); err != nil {
				return err
			}
		}
		return nil
	})
	start, perPush := t.received(), int64(t.size.connections)
	for end := time.Now().Add(t.size.time); pushes < int64(t.size.pushes) && (pushes == 0 || time.Now().Before(end)); {
		turn <- struct{}{}
		pushes++
		err = t.swarm.Until(ctx, "receive", func() bool {
			t.show("%d of %d pushes", pushes, t.size.pushes)
			return t.received()-start >= pushes*perPush || p.stopped.Load()
		})
		if err != nil || p.stopped.Load() {
			cancel()
			break
		}
	}
	close(turn)
	return pushes, errors.Join(err, join())
}

// openLoop pushes at a fixed rate for d, and returns when all has arrived. What is to be sent in the first
// warmTime is not measured.
func (p *publishers) openLoop(ctx context.Context, rate float64, d time.Duration) (pushes int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	moments := make(chan int64, int(rate*d.Seconds())+2) // never full: a server that is late makes it longer, not slower
	warm := swarm.Now() + int64(warmTime)
	go pace(ctx, rate, d, moments)
	return p.work(ctx, func(ctx context.Context, w *writer) error {
		for at := range moments {
			if at < warm {
				at = 0 // not measured
			}
			if err := w.push(ctx, 1, at); err != nil {
				return err
			}
		}
		return nil
	})
}

// pace sends the moments of an open loop when they have come. It sleeps in the kernel: Go's timers are as
// coarse as a millisecond when nothing else is to be done.
func pace(ctx context.Context, rate float64, d time.Duration, moments chan<- int64) {
	defer close(moments)
	runtime.LockOSThread() // and so its timer slack, with which the thread ends
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	interval := float64(time.Second) / rate
	start := swarm.Now()
	for k := 0; ; k++ {
		at := start + int64(float64(k)*interval)
		if at-start > int64(d) || ctx.Err() != nil {
			return
		}
		if left := at - swarm.Now(); left > 0 {
			ts := unix.NsecToTimespec(left)
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // too early is only early
		}
		moments <- at
	}
}

// warmTime is how long an open loop runs before it is measured.
const warmTime = time.Second

// take waits until n pushes more may be ahead of the subscribers.
func (p *publishers) take(ctx context.Context, n int) error {
	if p.t.size.window == 0 {
		return nil
	}
	err := p.window.Acquire(ctx, int64(n))
	p.taken.Add(int64(n))
	return err
}

// give gives back what has arrived, which a server that repeats messages makes more than was pushed.
func (p *publishers) give(arrived int64) {
	if arrived = min(arrived, p.taken.Load()); arrived > p.given {
		p.window.Release(arrived - p.given)
		p.given = arrived
	}
}

// work lets the publishers work while the swarm receives, and returns when all has arrived.
func (p *publishers) work(ctx context.Context, do func(context.Context, *writer) error) (pushes int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := p.t
	before, start, perPush := t.book.pushes, t.received(), int64(t.swarm.Subscribers(0))
	p.given = 0
	p.taken.Store(0)
	join := p.start(ctx, do)
	arrived := func() int64 { return (t.received() - start) / perPush }
	err = t.swarm.Until(ctx, "push", func() bool {
		t.show("%d pushes have reached everybody", arrived())
		p.give(arrived())
		return p.running.Load() == 0
	})
	if err != nil {
		cancel()
	}
	err = errors.Join(err, join())
	pushes = t.book.pushes - before
	if err != nil {
		return pushes, err
	}
	err = t.swarm.Until(ctx, "receive", func() bool { return arrived() >= pushes })
	p.give(pushes)
	return pushes, err
}

func (t *trial) received() int64 {
	n, _ := t.swarm.Received()
	return n
}
