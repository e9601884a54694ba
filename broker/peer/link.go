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
	heartbeat    = 250 * time.Millisecond // of a link in use
	restBeat     = 2 * time.Second        // of a link at rest
	inUse        = 5 * time.Second        // how long a link is in use after a hint
	writeTimeout = 5 * time.Second
	dialTimeout  = 5 * time.Second
	minWait      = 100 * time.Millisecond
	maxWait      = 2 * time.Second
)

var errNewID = errors.New("our own id changed")

// link is the sending end of the link to one server.
type link struct {
	l        *Links
	id, host string
	log      zerolog.Logger
	callers  *callers
	*outbox
}

func newLink(l *Links, id, host string) *link {
	log := l.opts.Logger.With().Str("peer", id).Str("host", host).Logger()
	return &link{l: l, id: id, host: host, log: log, callers: newCallers(), outbox: newOutbox()}
}

// keep dials and serves the link, again and again, until ctx ends.
func (k *link) keep(ctx context.Context) {
	defer k.callers.close()
	wait, failed := minWait, false
	for {
		self := k.l.opts.Self()
		began := time.Now()
		conn, err := k.dial(ctx, self)
		if err == nil {
			err = k.serve(ctx, conn, self)
			failed = false
		} else {
			k.callers.tried(nil, err)
		}
		if ctx.Err() != nil {
			return
		}
		if !failed { // of a row of failures the first is told
			k.log.Warn().Err(err).Msg("peer link is down")
		}
		failed = true
		if time.Since(began) > maxWait {
			wait = minWait // it is not one that falls as soon as it is up
		}
		if !k.pause(ctx, wait/2+rand.N(wait/2)) {
			return
		}
		wait = min(2*wait, maxWait)
	}
}

// pause waits for d, or until a call wants the link. It is false when ctx ended.
func (k *link) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-k.callers.want:
	}
	return true
}

// connection is an open link whose other end has proven what it must.
type connection struct {
	*websocket.Conn
	calls bool // the other end takes calls
}

func (k *link) dial(ctx context.Context, self string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	address := url.URL{Scheme: k.l.scheme("ws"), Host: k.host, Path: "/peer/link",
		RawQuery: url.Values{"from": {self}, "to": {k.id}}.Encode()}
	ours := k.l.greeting()
	conn, answer, err := websocket.Dial(ctx, address.String(), &websocket.DialOptions{
		HTTPClient: k.l.client, HTTPHeader: http.Header{headerPeer: {ours.String()}},
	})
	if err != nil {
		return nil, err
	}
	theirs := readHello(answer.Header)
	if err := k.l.prove(ctx, conn, self, k.id, ours, theirs); err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	return &connection{conn, theirs.version == version}, nil
}

// serve writes batches until the link breaks, ctx ends or this server has a new id.
func (k *link) serve(ctx context.Context, conn *connection, self string) (err error) {
	write := func(kind websocket.MessageType, message []byte) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return conn.Write(ctx, kind, message)
	}
	calls := newCaller(conn.calls, write)
	broken := make(chan error, 1)
	go func() { broken <- calls.hear(ctx, conn.Conn) }()
	defer func() {
		k.callers.down(err)
		_ = conn.CloseNow()
		<-broken
	}()
	k.open()
	k.callers.tried(calls, nil)
	k.log.Debug().Msg("peer link is up")
	defer func() { k.l.opts.Metrics.Missed(k.close()) }()

	batch := func(b []byte) error { return write(websocket.MessageBinary, b) }
	var buf []byte
	var hints []Hint
	var said uint64    // what the receiver expects next
	var used time.Time // when there was a hint last
	var next time.Time // the heartbeat
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for beat := true; ; { // the first batch is written at once: it is what the receiver counts from
		var number uint64
		hints, number = k.take(hints)
		now := time.Now()
		if len(hints) > 0 || number != said { // or one was dropped, which the next heartbeat tells
			used = now
		}
		if beat || len(hints) > 0 {
			var err error
			if buf, err = k.flush(buf, number, hints, batch); err != nil {
				return fmt.Errorf("write: %w", err)
			}
			said = number + uint64(len(hints))
			next = now.Add(nextBeat(now, now.Sub(used) < inUse))
		} else if soon := now.Add(nextBeat(now, true)); number != said && soon.Before(next) {
			next = soon
		}
		timer.Reset(next.Sub(now))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-broken:
			broken <- err // for the end
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

// nextBeat is how long it is until the next heartbeat, if no batch goes before. All links beat at the same moments, so
// that a process wakes once for all of its links: 40 idle brokers on one machine took 4.7 s of CPU in 10 s, where
// each link had a rhythm of its own 12.2 s; and 1.3 s since links at rest beat slowly.
func nextBeat(now time.Time, used bool) time.Duration {
	every := restBeat
	if used {
		every = heartbeat
	}
	d := every - time.Duration(now.UnixNano())%every
	if d < every/2 { // not right behind a batch
		d += every
	}
	return d
}

// flush writes hints in batches, or one batch without any, and counts what became of them.
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
