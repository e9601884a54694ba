package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
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
)

var errNewID = errors.New("our own id changed")

// link is the sending end of the link to one server.
type link struct {
	l        *Links
	id, host string
	log      zerolog.Logger
	caller   *currentCaller
	*outbox
}

func newLink(l *Links, id, host string) *link {
	log := l.opts.Logger.With().Str("peer", id).Str("host", host).Logger()
	return &link{l: l, id: id, host: host, log: log, caller: newCurrentCaller(), outbox: newOutbox()}
}

// run dials and serves the link, again and again, until ctx ends.
func (k *link) run(ctx context.Context) {
	defer k.caller.close()
	delay, failed := minRedialDelay, false
	for {
		self := k.l.opts.Self()
		began := time.Now()
		conn, err := k.dial(ctx, self)
		if err == nil {
			err = k.serve(ctx, conn, self)
			failed = false
		} else {
			k.caller.attemptDone(nil, err)
		}
		if ctx.Err() != nil {
			return
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
	}
	return true
}

// connection is an open link after the handshake.
type connection struct {
	*websocket.Conn
	takesCalls bool // the other end accepts calls
}

func (k *link) dial(ctx context.Context, self string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	address := url.URL{Scheme: k.l.scheme(), Host: k.host, Path: "/peer/link",
		RawQuery: url.Values{"from": {self}, "to": {k.id}}.Encode()}
	ours := k.l.newHello()
	conn, answer, err := websocket.Dial(ctx, address.String(), &websocket.DialOptions{
		HTTPClient: k.l.client, HTTPHeader: http.Header{headerPeer: {ours.String()}},
	})
	if err != nil {
		return nil, err
	}
	theirs := readHello(answer.Header)
	if err := k.l.sendProof(ctx, conn, self, k.id, ours, theirs); err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	return &connection{conn, theirs.version == version}, nil
}

// serve writes batches until the link breaks, ctx ends or this server's id changes.
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
	defer func() { k.l.opts.Metrics.Missed(k.outbox.close()) }()

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
		hints, number = k.take(hints)
		now := time.Now()
		if len(hints) > 0 || number != expected { // the number differs if hints were dropped
			lastHint = now
		}
		if beat || len(hints) > 0 {
			var err error
			if buf, err = k.flush(buf, number, hints, batch); err != nil {
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
func (k *link) flush(buf []byte, number uint64, hints []Hint, write func([]byte) error) ([]byte, error) {
	for {
		var n int
		buf, n = appendBatch(buf[:0], number, hints)
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
