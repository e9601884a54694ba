package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/coder/websocket"
	"github.com/rs/zerolog"
)

const (
	heartbeat      = 250 * time.Millisecond // the interval on an active link
	idleHeartbeat  = 2 * time.Second        // the interval on an idle link
	activeTime     = 5 * time.Second        // how long a link is active after a hint
	writeTimeout   = 5 * time.Second
	dialTimeout    = 5 * time.Second
	minRedialDelay = 100 * time.Millisecond
	maxRedialDelay = 2 * time.Second
	leaseInterval  = time.Second // between two reads of the lease of a server that refuses connections
)

var errNewID = errors.New("our own id changed")

// link is the sending end of the link to one server.
type link struct {
	l        *Links
	id, host string
	log      zerolog.Logger
	caller   *currentCaller
	done     chan struct{} // closed when run returns
	leaseAt  time.Time     // when readLease has last read; only run uses it
	*outbox
}

func newLink(l *Links, id, host string) *link {
	log := l.opts.Logger.With().Str("peer", id).Str("host", host).Logger()
	return &link{
		l: l, id: id, host: host, log: log, caller: newCurrentCaller(), done: make(chan struct{}), outbox: l.outboxes.list(id),
	}
}

// run dials and serves the link, again and again, until ctx ends or this server says goodbye.
func (k *link) run(ctx context.Context) {
	defer close(k.done)
	defer k.caller.close()
	select { // a link to another address of the server may still use the outbox
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return
	}
	defer k.drop()
	delay, failed := minRedialDelay, false
	for {
		self := k.l.opts.Self()
		began := time.Now()
		conn, err := k.dial(ctx, self)
		if k.l.in.dialled(k.id, isGone(err)) {
			k.readLease(ctx)
		}
		if err == nil {
			err = k.serve(ctx, conn, self)
			failed = false
		} else {
			k.drop()
			k.caller.attemptDone(nil, err)
		}
		switch {
		case ctx.Err() != nil || k.l.isLeaving():
			return
		case err == errNewID:
			continue // the queue waits for the next link
		}
		if !failed { // log only the first of several failures in a row
			k.log.Warn().Err(err).Msg("peer link is down")
		}
		failed = true
		if time.Since(began) > maxRedialDelay {
			delay = minRedialDelay // the link was up for a while
		}
		if !k.waitToRedial(ctx, delay/2+rand.N(delay/2)) {
			return
		}
		delay = min(2*delay, maxRedialDelay)
	}
}

// waitToRedial waits for d, or until a call needs the link. It returns false if ctx ended.
func (k *link) waitToRedial(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-k.caller.dialNow:
	case <-k.l.leaving:
	}
	return true
}

// readLease reads the lease of a server whose address refuses connections, at most once a second.
func (k *link) readLease(ctx context.Context) {
	if k.l.opts.LastActive == nil || time.Since(k.leaseAt) < leaseInterval {
		return
	}
	k.leaseAt = time.Now()
	ctx, cancel := context.WithTimeout(ctx, leaseInterval)
	defer cancel()
	if active, err := k.l.opts.LastActive(ctx, k.id); err == nil {
		k.l.in.leaseRead(k.id, active)
	}
}

// drop empties the queue. Hints count as dropped from now on, until there is a link.
func (k *link) drop() { k.l.opts.Metrics.Missed(k.outbox.close()) }

// connection is an open link after the handshake.
type connection struct {
	*websocket.Conn
	takesCalls bool     // the other end accepts calls
	features   features // of the batches
}

// goneError is the error of a dial that shows that the server's process does not run.
type goneError struct{ error }

func (e goneError) Unwrap() error { return e.error }

// isGone reports whether err shows that no process listens at the address of the server, or
// another one.
func isGone(err error) bool {
	_, gone := errors.AsType[goneError](err)
	return gone || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}

func (k *link) dial(ctx context.Context, self string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	query := url.Values{"from": {self}, "to": {k.id}}
	if k.countedAs != "" && k.countedAs != self {
		query.Set("was", k.countedAs)
	}
	address := url.URL{Scheme: k.l.scheme(), Host: k.host, Path: "/peer/link", RawQuery: query.Encode()}
	ours := k.l.newHello()
	header := http.Header{headerPeer: {ours.String()}}
	supported.set(header)
	conn, answer, err := websocket.Dial(ctx, address.String(), &websocket.DialOptions{HTTPClient: k.l.client, HTTPHeader: header})
	if err != nil {
		if answer != nil && answer.StatusCode == http.StatusMisdirectedRequest {
			err = goneError{err}
		}
		return nil, err
	}
	theirs := readHello(answer.Header)
	if err := k.l.sendProof(ctx, conn, self, k.id, ours, theirs); err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	k.countedAs = self
	return &connection{conn, theirs.version == version, supported & readFeatures(answer.Header)}, nil
}

// serve writes batches until the link breaks, ctx ends, this server's id changes, or Goodbye ends
// the link.
func (k *link) serve(ctx context.Context, conn *connection, self string) (err error) {
	write := func(kind websocket.MessageType, message []byte) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return conn.Write(ctx, kind, message)
	}
	calls := newCaller(conn.takesCalls, write)
	broken := make(chan error, 1)
	go func() { broken <- calls.readAnswers(ctx, conn.Conn) }()
	defer func() {
		k.caller.down(err)
		_ = conn.CloseNow()
		<-broken
	}()
	k.outbox.open()
	k.caller.attemptDone(calls, nil)
	k.log.Debug().Msg("peer link is up")
	defer func() {
		if err != errNewID {
			k.drop()
		}
	}()

	batch := func(b []byte) error { return write(websocket.MessageBinary, b) }
	var buf []byte
	var hints []Hint
	var expected uint64    // the number that the receiver expects next
	var lastHint time.Time // when the last hint was sent or dropped
	var next time.Time     // when the next heartbeat is due
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for beat := true; ; { // write the first batch at once: the receiver counts from its number
		var number uint64
		hints, number, _ = k.take(hints)
		now := time.Now()
		if len(hints) > 0 || number != expected { // the number differs if hints were dropped
			lastHint = now
		}
		if beat || len(hints) > 0 {
			if buf, err = k.flush(buf, number, hints, ending{}, batch); err != nil {
				return fmt.Errorf("write: %w", err)
			}
			expected = number + uint64(len(hints))
			next = now.Add(untilHeartbeat(now, now.Sub(lastHint) < activeTime))
		} else if soon := now.Add(untilHeartbeat(now, true)); number != expected && soon.Before(next) {
			next = soon // hints were dropped: the next heartbeat reports the loss, so do not wait for an idle one
		}
		timer.Reset(next.Sub(now))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-broken:
			broken <- err // the deferred function receives it again
			return fmt.Errorf("closed by the peer: %w", err)
		case <-k.l.leaving:
			return k.sayGoodbye(ctx, conn.features, batch, broken)
		case <-k.wake:
			beat = false
		case <-timer.C:
			beat = true
		}
		if k.l.opts.Self() != self {
			return errNewID
		}
	}
}

// untilHeartbeat returns the time until the next heartbeat. All links beat at the same moments, so
// that a process wakes once for all of them. CPU of 40 idle brokers on one machine in 10 s: 12.2 s
// if each link has its own moments, 4.7 s with common moments, and 1.3 s if idle links also beat
// slowly.
func untilHeartbeat(now time.Time, active bool) time.Duration {
	every := idleHeartbeat
	if active {
		every = heartbeat
	}
	d := every - time.Duration(now.UnixNano())%every
	if d < every/2 { // not right after a batch
		d += every
	}
	return d
}

// flush writes hints in batches, or one empty batch. It counts sent and missed hints.
func (k *link) flush(buf []byte, number uint64, hints []Hint, end ending, write func([]byte) error) ([]byte, error) {
	for {
		var n int
		buf, n = appendBatch(buf[:0], number, hints, end)
		if err := write(buf); err != nil {
			k.l.opts.Metrics.Missed(len(hints))
			return buf, err
		}
		k.l.opts.Metrics.Sent(n)
		number, hints = number+uint64(n), hints[n:]
		if len(hints) == 0 {
			return buf, nil
		}
	}
}
