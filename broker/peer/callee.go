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
	// maxCalls is how many calls of one link may wait for their answers.
	maxCalls     = 256
	maxErrorText = 1 << 10
)

var errCalls = errors.New("too many calls at once")

// callee answers the calls that come over one link.
type callee struct {
	l     *Links
	conn  *websocket.Conn
	ctx   context.Context
	stop  context.CancelFunc
	turns chan struct{} // one for each call under way
	calls sync.WaitGroup
}

func (l *Links) newCallee(ctx context.Context, conn *websocket.Conn) *callee {
	c := &callee{l: l, conn: conn, turns: make(chan struct{}, maxCalls)}
	c.ctx, c.stop = context.WithCancel(ctx)
	return c
}

// take answers a call, of which nothing is kept. It does not wait for the answer.
func (c *callee) take(text []byte) error {
	var m callMessage
	if err := json.Unmarshal(text, &m); err != nil || m.ID <= 0 {
		return errMalformed
	}
	select {
	case c.turns <- struct{}{}:
	default: // a dialer waits for answers before
		return errCalls
	}
	c.calls.Go(func() {
		answer := c.ask(m)
		<-c.turns // before the dialer may know
		ctx, cancel := context.WithTimeout(c.ctx, writeTimeout)
		defer cancel()
		_ = c.conn.Write(ctx, websocket.MessageText, answer) // where that fails the link ends, which its reader sees
	})
	return nil
}

// ask encodes the answer to a call, or why there is none.
func (c *callee) ask(m callMessage) []byte {
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
	refused, _ := encodeMessage(answerMessage{ID: m.ID, Error: text[:min(len(text), maxErrorText)]})
	return refused
}

// close ends the calls under way.
func (c *callee) close() {
	c.stop()
	c.calls.Wait()
}
