package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"switchboard/bench/swarm"
)

// closedLoop runs a closed loop for d and waits until all messages are delivered. It returns the
// number of pushes.
func (p *publishers) closedLoop(ctx context.Context, d time.Duration) (pushes int64, err error) {
	end := time.Now().Add(d)
	return p.runAll(ctx, func(ctx context.Context, w *publisher) error {
		size := max(1, p.t.size.batch)
		for time.Now().Before(end) && !p.stopped.Load() {
			if err := p.acquire(ctx, size); err != nil {
				return err
			}
			if err := w.push(ctx, size, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// pushToEach pushes one message to every channel. If no subscriber is connected, it does not wait
// for deliveries.
func (p *publishers) pushToEach(ctx context.Context, connected bool) error {
	once := func(ctx context.Context, w *publisher) error {
		for range w.channels {
			if connected {
				if err := p.acquire(ctx, 1); err != nil {
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
		_, err := p.runAll(ctx, once)
		return err
	}
	join := p.start(ctx, once)
	return join()
}

// oneAtATime pushes until the scenario's number of pushes or its time is reached. Each push starts
// after all subscribers have received the previous one. It returns the number of pushes.
func (p *publishers) oneAtATime(ctx context.Context) (pushes int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := p.t
	tokens := make(chan struct{}, 1)
	join := p.start(ctx, func(ctx context.Context, w *publisher) error {
		for range tokens {
			if err := w.push(ctx, 1, 0); err != nil {
				return err
			}
		}
		return nil
	})
	start, perPush := t.received(), int64(t.swarm.Subscribers(0))
	for end := time.Now().Add(t.size.time); pushes < int64(t.size.pushes) && (pushes == 0 || time.Now().Before(end)); {
		tokens <- struct{}{}
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
	close(tokens)
	return pushes, errors.Join(err, join())
}

// openLoop pushes at a fixed rate for d and waits until all messages are delivered. Messages due
// within warmUp are not measured.
func (p *publishers) openLoop(ctx context.Context, rate float64, d time.Duration) (pushes int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dueTimes := make(chan int64, int(rate*d.Seconds())+2) // never full: a slow server makes the queue longer and does not slow down the loop
	measureFrom := swarm.Now() + int64(warmUp)
	go sendDueTimes(ctx, rate, d, dueTimes)
	return p.runAll(ctx, func(ctx context.Context, w *publisher) error {
		for at := range dueTimes {
			if at < measureFrom {
				at = 0 // not measured
			}
			if err := w.push(ctx, 1, at); err != nil {
				return err
			}
		}
		return nil
	})
}

// sendDueTimes sends the due time of each push of an open loop at that time. It sleeps in the
// kernel, because Go's timers are late by up to a millisecond in an idle process.
func sendDueTimes(ctx context.Context, rate float64, d time.Duration, dueTimes chan<- int64) {
	defer close(dueTimes)
	runtime.LockOSThread() // the timer slack belongs to the thread, which ends with this goroutine
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
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // waking early is harmless
		}
		dueTimes <- at
	}
}

// warmUp is the time at the start of an open loop that is not measured.
const warmUp = time.Second

// acquire waits until n more pushes fit into the window.
func (p *publishers) acquire(ctx context.Context, n int) error {
	if p.t.size.window == 0 {
		return nil
	}
	err := p.window.Acquire(ctx, int64(n))
	p.acquired.Add(int64(n))
	return err
}

// release returns delivered messages to the window. It returns at most the number acquired, because
// a server that repeats messages delivers more than was pushed.
func (p *publishers) release(arrived int64) {
	if arrived = min(arrived, p.acquired.Load()); arrived > p.released {
		p.window.Release(arrived - p.released)
		p.released = arrived
	}
}

// runAll runs do in all publishers while the swarm receives, and returns after all messages are
// delivered.
func (p *publishers) runAll(ctx context.Context, do func(context.Context, *publisher) error) (pushes int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := p.t
	before, start, perPush := t.pushLog.pushes, t.received(), int64(t.swarm.Subscribers(0))
	p.released = 0
	p.acquired.Store(0)
	join := p.start(ctx, do)
	arrived := func() int64 { return (t.received() - start) / perPush }
	err = t.swarm.Until(ctx, "push", func() bool {
		t.show("%d pushes are delivered to all subscribers", arrived())
		p.release(arrived())
		return p.running.Load() == 0
	})
	if err != nil {
		cancel()
	}
	err = errors.Join(err, join())
	pushes = t.pushLog.pushes - before
	if err != nil {
		return pushes, err
	}
	err = t.swarm.Until(ctx, "receive", func() bool { return arrived() >= pushes })
	p.release(pushes)
	return pushes, err
}

func (t *trial) received() int64 {
	n, _ := t.swarm.Received()
	return n
}
