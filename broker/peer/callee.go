package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/coder/websocket"
)

const (
	// maxCalls is the most unanswered calls of one link.
	maxCalls     = 256
	maxErrorText = 1 << 10 // bytes
)

var errTooManyCalls = errors.New("too many calls at once")

// callee answers the calls of one inbound link.
type callee struct {
	l     *Links
	conn  *websocket.Conn
	ctx   context.Context
	stop  context.CancelFunc
	slots chan struct{} // one element for each running call
	calls sync.WaitGroup
}

func (l *Links) newCallee(ctx context.Context, conn *websocket.Conn) *callee {
	c := &callee{l: l, conn: conn, slots: make(chan struct{}, maxCalls)}
	c.ctx, c.stop = context.WithCancel(ctx)
	return c
}

// accept answers a call in a goroutine. It does not keep text.
func (c *callee) accept(text []byte) error {
	var m callMessage
	if err := json.Unmarshal(text, &m); err != nil || m.ID <= 0 {
		return errMalformed
	}
	select {
	case c.slots <- struct{}{}:
	default: // a correct dialer waits for answers first
		return errTooManyCalls
	}
	c.calls.Go(func() {
		answer := c.answer(m)
		<-c.slots // before the dialer receives the answer and sends another call
		ctx, cancel := context.WithTimeout(c.ctx, writeTimeout)
		defer cancel()
		_ = c.conn.Write(ctx, websocket.MessageText, answer) // if it fails, the link ends and listen returns
	})
	return nil
}

// answer runs a call and returns its answer, or its error, as JSON.
func (c *callee) answer(m callMessage) []byte {
	ctx, cancel := context.WithTimeout(c.ctx, callTimeout)
	defer cancel()
	var v any
	err := fmt.Errorf("there is no call %.40q", m.Call)
	if f := c.l.calls[m.Call]; f != nil {
		v, err = f(ctx, m.Body)
	}
	if err == nil {
		a := answerMessage{ID: m.ID}
		if a.Answer, err = json.Marshal(v); err == nil {
			var text []byte
			if text, err = encodeMessage(a); err == nil {
				return text
			}
		}
	}
	text := err.Error()
	failure, _ := encodeMessage(answerMessage{ID: m.ID, Error: text[:min(len(text), maxErrorText)]})
	return failure
}

// close cancels the running calls and waits for them.
func (c *callee) close() {
	c.stop()
	c.calls.Wait()
}
