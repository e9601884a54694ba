package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"switchboard/internal/wire"
)

const (
	// connectTimeout bounds each of dialling and the wait for `connected`.
	connectTimeout = 10 * time.Second
	// writeTimeout is how long the broker may take to take bytes.
	writeTimeout = 10 * time.Second
	// lastWords is how long a connection that is over in one direction may go on in the
	// other: the reason for the close may be on its way, or the last acknowledgement.
	lastWords = time.Second
)

// session is one connection: a reader, a writer, and what waits to be written.
type session struct {
	client     *Client
	url        string
	conn       conn
	cancel     context.CancelCauseFunc // ends the session; the first cause counts
	wake       chan struct{}           // one slot: there is something to write
	finish     chan struct{}           // closed: write the last acknowledgement and return
	connectRef int64
	wg         sync.WaitGroup

	// only the reader touches these
	silence time.Duration // how long nothing may arrive, 0 for ever
	refused *Error        // the answer to connect

	timer *time.Timer // runs while silence does; safe for all

	// guarded by Client.mu
	upSince time.Time // when `connected` came; written by the reader
	outbox  []outgoing
	acked   int64 // last id acknowledged on this connection
	ackDue  bool
}

// outgoing is one message to write; call is nil where nobody waits for an answer.
type outgoing struct {
	req  wire.Request
	call *call
}

// connection dials e and serves one connection to its end, of which it returns the
// cause. up is how long it was connected.
func (c *Client) connection(ctx context.Context, e endpoint) (up time.Duration, err error) {
	s := &session{client: c, url: e.raw, wake: make(chan struct{}, 1), finish: make(chan struct{})}
	if err = s.open(ctx, e); err != nil {
		return 0, err
	}
	err = s.run(ctx)
	return c.detach(s), err
}

// open dials e and makes connect the first message to write.
func (s *session) open(ctx context.Context, e endpoint) error {
	bounded, done := context.WithTimeout(ctx, connectTimeout)
	defer done()
	token, err := s.client.currentToken(bounded)
	if err != nil {
		return err
	}
	if s.conn, err = s.client.dial(bounded, e, s.touch); err != nil {
		return err
	}
	s.client.greet(s, token)
	return nil
}

// run starts reader and writer and waits for both. ctx ending leaves the writer a moment
// for the last acknowledgement.
func (s *session) run(ctx context.Context) error {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.timer = time.AfterFunc(connectTimeout, func() { cancel(errSilent) })
	defer s.timer.Stop()
	written := make(chan struct{})
	s.wg.Go(func() { cancel(s.readLoop(inner)) })
	s.wg.Go(func() {
		defer close(written)
		s.writeLoop(inner)
	})
	select {
	case <-ctx.Done():
		s.leave(inner, written)
		cancel(ctx.Err())
	case <-inner.Done():
	}
	s.conn.close()
	s.wg.Wait()
	return s.cause(context.Cause(inner))
}

// leave gives the callback that runs a moment to return, and the writer one to
// acknowledge its message, so that an orderly stop brings nothing twice.
func (s *session) leave(ctx context.Context, written <-chan struct{}) {
	moment := time.NewTimer(lastWords)
	defer moment.Stop()
	select {
	case <-s.client.delivered:
	case <-moment.C:
	case <-ctx.Done():
	}
	close(s.finish)
	moment.Reset(lastWords)
	select {
	case <-written:
	case <-moment.C:
	case <-ctx.Done():
	}
}

// cause prefers what the broker said over how the connection then ended.
func (s *session) cause(err error) error {
	if _, ok := errors.AsType[*ClosedError](err); !ok && s.refused != nil {
		return refusal(s.refused)
	}
	return err
}

func (s *session) readLoop(ctx context.Context) error {
	for {
		if err := s.awaitRoom(ctx); err != nil {
			return err
		}
		raw, err := s.conn.read()
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		s.touch()
		if err := s.receive(ctx, raw); err != nil {
			return err
		}
	}
}

// awaitRoom holds the reader back while the callbacks are behind. The silence of that
// time is ours, so it does not count.
func (s *session) awaitRoom(ctx context.Context) error {
	c := s.client
	if s.upSince.IsZero() || !c.inbox.full(c.callsPending) {
		return nil
	}
	s.timer.Stop()
	defer s.touch()
	for c.inbox.full(c.callsPending) {
		select {
		case <-c.inbox.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// touch starts the count of silence again. Only the reader calls it.
func (s *session) touch() {
	if s.silence > 0 {
		s.timer.Reset(s.silence)
	}
}

// signal wakes the writer; it never blocks.
func (s *session) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// writeLoop writes until nothing is left, then waits. After a failure it leaves the
// reader a moment to find the broker's reason, which is worth more than a broken pipe.
func (s *session) writeLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.finish:
			_ = s.writeAll(ctx, s.takeLast, lastWords)
			return
		case <-s.wake:
		}
		if err := s.writeAll(ctx, s.take, writeTimeout); err != nil {
			select {
			case <-time.After(lastWords):
			case <-s.finish:
			case <-ctx.Done():
			}
			s.cancel(fmt.Errorf("write: %w", err))
			return
		}
	}
}

func (s *session) writeAll(ctx context.Context, take func() []wire.Request, limit time.Duration) error {
	for {
		reqs := take()
		if len(reqs) == 0 {
			return nil
		}
		messages := make([][]byte, len(reqs))
		for i, req := range reqs {
			raw, err := json.Marshal(req)
			if err != nil { // the payload was checked when it was handed in
				return err
			}
			messages[i] = raw
		}
		bounded, done := context.WithTimeout(ctx, limit)
		err := s.conn.write(bounded, messages)
		done()
		if err != nil {
			return err
		}
	}
}

// take is what is to be written now. From here on the calls among it count as sent.
func (s *session) take() []wire.Request {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	var reqs []wire.Request
	for _, o := range s.outbox {
		if o.call != nil && c.calls[o.call.ref] != o.call {
			continue // given up meanwhile
		}
		if o.call != nil {
			o.call.sent = true
		}
		reqs = append(reqs, o.req)
	}
	s.outbox = nil
	if s.ackDue {
		reqs = append(reqs, s.ackLocked())
	}
	return reqs
}

// takeLast is the acknowledgement that is still owed when the client stops.
func (s *session) takeLast() []wire.Request {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.upSince.IsZero() || s.client.opts.AutoAck || s.client.handled <= s.acked {
		return nil
	}
	return []wire.Request{s.ackLocked()}
}

func (s *session) ackLocked() wire.Request {
	s.acked, s.ackDue = s.client.handled, false
	return wire.Request{Type: wire.TypeAck, ID: s.acked}
}

func (s *session) sendLocked(o outgoing) {
	s.outbox = append(s.outbox, o)
	s.signal()
}
