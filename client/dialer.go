package client

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// stagger is how long an attempt may be silent before the next URL is tried at the same time.
	stagger = time.Second
	// patience is how long an attempt may be silent while there are other URLs. On a slow network it
	// is a third of the time for which the URL has failed.
	patience = 3 * time.Second
	// connectTimeout is the longest patience, and that with one URL.
	connectTimeout = 10 * time.Second
	// minUptime is how long a connection must last so that it makes up for failures. An answer to
	// connect is not enough: a broker that fails under the load of returning clients answers each of
	// them first.
	minUptime = 3 * time.Second
)

// dialer chooses the URLs of attempts and their times, as docs/protocol.md says under Reconnecting.
// Each URL has its own delays. While one URL is silent, the next one is tried at the same time
// (RFC 8305). Only Run's goroutine uses it.
type dialer struct {
	c         *Client
	targets   []*target
	notBefore time.Time // no attempt before this time
	byServer  bool      // because the broker has asked for it
	attempts  sync.WaitGroup
}

// target is one URL, with what is known about it.
type target struct {
	endpoint
	backoff   backoff
	failures  int                // in a row; -1 for the one that comes first
	notBefore time.Time          // no attempt before this time
	began     time.Time          // when the last attempt began
	cancel    context.CancelFunc // ends the attempt; nil for none
}

// dialled is the result of an attempt. The session has a connection unless there is an error.
type dialled struct {
	target  *target
	began   time.Time
	session *session
	err     error
}

// close ends the connection of an attempt that is not used.
func (r dialled) close() {
	if r.err == nil {
		r.session.conn.close()
	}
}

func newDialer(c *Client) *dialer {
	d := &dialer{c: c}
	for _, e := range c.endpoints {
		d.targets = append(d.targets, &target{endpoint: e, backoff: newBackoff(c.opts, len(c.endpoints))})
	}
	rand.Shuffle(len(d.targets), func(i, j int) { d.targets[i], d.targets[j] = d.targets[j], d.targets[i] })
	return d
}

// next returns the target of the next attempt, and how long to wait for it. The target is nil while
// an attempt is being made at each one.
func (d *dialer) next() (*target, time.Duration) {
	now := time.Now()
	due := func(t *target) time.Time {
		if t.notBefore.Before(now) {
			return now
		}
		return t.notBefore
	}
	var best *target
	at := d.notBefore
	for _, t := range d.targets {
		if t.cancel != nil {
			at = later(at, t.began.Add(stagger))
		} else if best == nil || cmp.Or(due(t).Compare(due(best)), cmp.Compare(t.failures, best.failures)) < 0 {
			best = t
		}
	}
	if best == nil {
		return nil, 0
	}
	return best, later(at, due(best)).Sub(now)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// retryIn returns the time until the next attempt, 0 if one is being made.
func (d *dialer) retryIn() time.Duration {
	if slices.ContainsFunc(d.targets, func(t *target) bool { return t.cancel != nil }) {
		return 0
	}
	_, wait := d.next()
	return max(0, wait)
}

// patience returns how long an attempt may be silent.
func (d *dialer) patience(t *target) time.Duration {
	if len(d.targets) == 1 {
		return connectTimeout
	}
	return min(max(patience, t.backoff.age()/3), connectTimeout)
}

// dial makes attempts until one opens a connection. It returns an error only if ctx ends.
func (d *dialer) dial(ctx context.Context) (dialled, error) {
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan dialled, len(d.targets))
	pending := 0
	defer func() {
		cancel()
		for _, t := range d.targets {
			t.cancel = nil
		}
		d.attempts.Go(func() { // without a wait: an attempt may take a moment to end
			for range pending {
				(<-results).close()
			}
		})
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		t, wait := d.next()
		if t != nil && wait <= 0 {
			d.start(ctx, t, results)
			pending++
			continue
		}
		timer.Stop()
		if t != nil {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case r := <-results:
			pending--
			if r.began != r.target.began || r.target.cancel == nil { // forgetDelays has ended it
				r.close()
				continue
			}
			r.target.cancel = nil
			if r.err == nil {
				d.opened(r.target)
				return r, nil
			}
			d.attemptFailed(ctx, r)
		case <-d.c.wake:
			d.forgetDelays()
		case <-ctx.Done():
			return dialled{}, ctx.Err()
		}
	}
}

// start makes an attempt.
func (d *dialer) start(ctx context.Context, t *target, results chan<- dialled) {
	s := newSession(d.c, t.raw, d.patience(t))
	bounded, cancel := context.WithTimeout(ctx, s.patience)
	began := time.Now()
	t.began, t.cancel = began, cancel
	d.c.queueState(State{Phase: Connecting, URL: t.raw})
	d.attempts.Go(func() {
		defer cancel()
		var err error
		s.conn, err = d.c.dial(bounded, t.endpoint, s.resetIdleTimer)
		results <- dialled{t, began, s, err}
	})
}

func (d *dialer) attemptFailed(ctx context.Context, r dialled) {
	if ctx.Err() != nil {
		return
	}
	r.target.failed()
	d.c.attemptEnded(r.target.raw, r.err, d.retryIn())
}

// opened notes that an attempt has opened a connection. The others end. Those that were silent
// count as failures.
func (d *dialer) opened(winner *target) {
	for _, t := range d.targets {
		if t != winner && t.cancel != nil && time.Since(t.began) >= stagger {
			t.failed()
		}
	}
}

// refused notes that a connection has ended before it was accepted.
func (d *dialer) refused(t *target, after time.Duration) {
	t.failed()
	d.delay(after)
}

// lost notes the end of a connection that was accepted uptime before. same prefers its URL for the
// next one.
func (d *dialer) lost(lost *target, uptime time.Duration, same bool, after time.Duration) {
	lost.failures = 0
	// A network that fails for some seconds now and then must not be taken for one that has failed
	// all the time. So the time of failing shrinks twice as fast as it grows.
	for _, t := range d.targets {
		if uptime >= minUptime && t.backoff.forget(3*uptime) {
			t.failures = 0
		}
	}
	if same {
		lost.failures = -1
	} else {
		lost.failed()
	}
	// All clients of a dead broker lose their connections in the same millisecond.
	spread := newBackoff(d.c.opts, 1)
	d.notBefore = time.Now().Add(spread.next())
	d.delay(after)
}

// delay makes all attempts wait, as the broker has asked. Zero does nothing.
func (d *dialer) delay(after time.Duration) {
	if d.byServer = after > 0; !d.byServer {
		return
	}
	for _, t := range d.targets {
		t.notBefore = time.Time{}
	}
	d.notBefore = time.Now().Add(after)
}

// forgetDelays forgets all delays, except one that the broker has asked for. It ends attempts that
// have been silent for a while: the network may have been another one.
func (d *dialer) forgetDelays() {
	if d.byServer && time.Now().Before(d.notBefore) {
		return
	}
	d.notBefore = time.Time{}
	for _, t := range d.targets {
		t.failures, t.notBefore = 0, time.Time{}
		t.backoff.reset()
		if t.cancel != nil && time.Since(t.began) >= stagger {
			t.cancel()
			t.cancel = nil
		}
	}
}

func (t *target) failed() {
	t.failures++
	t.notBefore = time.Now().Add(t.backoff.next())
}
