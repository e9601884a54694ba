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
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second
	// closeGrace is how long a connection that has failed in one direction stays open in the other.
	// The close reason or the last acknowledgement may still arrive.
	closeGrace = time.Second
)

// session is one connection, with its reader, its writer and its unsent messages.
type session struct {
	client     *Client
	url        string
	patience   time.Duration // the longest wait for the connection, and then for `connected`
	conn       conn
	cancel     context.CancelCauseFunc // ends the session; the first cause is kept
	wake       chan struct{}           // one slot: messages wait to be written
	finish     chan struct{}           // closed: write the last acknowledgement and return
	connectRef int64
	wg         sync.WaitGroup

	// only for the reader
	idleTimeout time.Duration // the longest time without a message; 0 means no limit
	refused     *Error        // the error that answered connect, or nil

	idleTimer *time.Timer // fires after idleTimeout; any goroutine may use it

	// guarded by Client.mu
	connectedAt time.Time // when `connected` arrived; the reader writes it
	outbox      []outgoing
	acked       int64 // last id acknowledged on this connection
	ackDue      bool
}

// outgoing is one message to write. call is nil for a message without an answer.
type outgoing struct {
	req  wire.Request
	call *call
}

// newSession returns the session of a connection that is not open yet. patience is as in session.
func newSession(c *Client, url string, patience time.Duration) *session {
	return &session{client: c, url: url, patience: patience, wake: make(chan struct{}, 1), finish: make(chan struct{})}
}

// run starts the reader and the writer, and waits for both. When ctx ends, the writer may still
// write the last acknowledgement.
func (s *session) run(ctx context.Context) error {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.idleTimer = time.AfterFunc(s.patience, func() { cancel(errIdleTimeout) })
	defer s.idleTimer.Stop()
	written := make(chan struct{})
	s.wg.Go(func() { cancel(s.readLoop(inner)) })
	s.wg.Go(func() {
		defer close(written)
		s.writeLoop(inner)
	})
	select {
	case <-ctx.Done():
		s.writeLastAck(inner, written)
		cancel(ctx.Err())
	case <-inner.Done():
	}
	s.conn.close()
	s.wg.Wait()
	return s.closeCause(context.Cause(inner))
}

// writeLastAck waits for the running callback to return, and then for the writer to acknowledge
// its message, each for closeGrace at most. So an orderly stop causes no duplicates.
func (s *session) writeLastAck(ctx context.Context, written <-chan struct{}) {
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-s.client.delivered:
	case <-timer.C:
	case <-ctx.Done():
	}
	close(s.finish)
	timer.Reset(closeGrace)
	select {
	case <-written:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// closeCause returns err if the broker gave a reason for closing, else its refusal of connect, else
// err.
func (s *session) closeCause(err error) error {
	if _, ok := errors.AsType[*ClosedError](err); !ok && s.refused != nil {
		return connectError(s.refused)
	}
	return err
}

func (s *session) readLoop(ctx context.Context) error {
	for {
		if err := s.waitForInbox(ctx); err != nil {
			return err
		}
		raw, err := s.conn.read()
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		s.resetIdleTimer()
		if err := s.receive(ctx, raw); err != nil {
			return err
		}
	}
}

// waitForInbox blocks the reader while the inbox is full. That time does not count towards
// idleTimeout.
func (s *session) waitForInbox(ctx context.Context) error {
	c := s.client
	if s.connectedAt.IsZero() || !c.inbox.full(c.callsPending) {
		return nil
	}
	s.idleTimer.Stop()
	defer s.resetIdleTimer()
	for c.inbox.full(c.callsPending) {
		select {
		case <-c.inbox.recheck:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// resetIdleTimer restarts idleTimeout. Only the reader calls it.
func (s *session) resetIdleTimer() {
	if s.idleTimeout > 0 {
		s.idleTimer.Reset(s.idleTimeout)
	}
}

// signal wakes the writer. It never blocks.
func (s *session) signal() {
	signal(s.wake)
}

// writeLoop writes until no message is left, then waits. After a failure it waits for closeGrace,
// so that the reader can still read the broker's close reason.
func (s *session) writeLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.finish:
			_ = s.writeAll(ctx, s.takeLastAck, closeGrace)
			return
		case <-s.wake:
		}
		if err := s.writeAll(ctx, s.takeRequests, writeTimeout); err != nil {
			select {
			case <-time.After(closeGrace):
			case <-s.finish:
			case <-ctx.Done():
			}
			s.cancel(fmt.Errorf("write: %w", err))
			return
		}
	}
}

func (s *session) writeAll(ctx context.Context, take func() []wire.Request, timeout time.Duration) error {
	for {
		reqs := take()
		if len(reqs) == 0 {
			return nil
		}
		messages := make([][]byte, len(reqs))
		for i, req := range reqs {
			raw, err := json.Marshal(req)
			if err != nil { // impossible: Publish and Request have encoded the payload
				return err
			}
			messages[i] = raw
		}
		bounded, cancel := context.WithTimeout(ctx, timeout)
		err := s.conn.write(bounded, messages)
		cancel()
		if err != nil {
			return err
		}
	}
}

// takeRequests returns the messages to write now, and marks their calls as sent.
func (s *session) takeRequests() []wire.Request {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	var reqs []wire.Request
	for _, o := range s.outbox {
		if o.call != nil && c.calls[o.call.ref] != o.call {
			continue // abandoned meanwhile
		}
		if o.call != nil {
			o.call.sent = true
			if o.call.sentAt.IsZero() {
				o.call.sentAt = time.Now()
			}
		}
		reqs = append(reqs, o.req)
	}
	s.outbox = nil
	if c.session == s {
		reqs = append(reqs, c.takeShownLocked()...)
	}
	if s.ackDue {
		reqs = append(reqs, s.ackLocked())
	}
	return reqs
}

// takeLastAck returns the acknowledgement that is due when the client stops, if any.
func (s *session) takeLastAck() []wire.Request {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.connectedAt.IsZero() || s.client.opts.AutoAck || s.client.handled <= s.acked {
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
