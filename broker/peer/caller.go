package peer

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/coder/websocket"
)

// currentCaller holds the caller of a link, which has one for each of its connections. If the link
// is down, a call triggers a dial and waits for its result.
type currentCaller struct {
	dialNow chan struct{} // one slot: a call waits, so dial now

	mu      sync.Mutex    // guards the fields below
	caller  *caller       // nil while the link is down
	err     error         // why it is down
	attempt chan struct{} // closed at the end of the current or next attempt to dial
	closed  bool          // no more attempts follow
}

func newCurrentCaller() *currentCaller {
	return &currentCaller{dialNow: make(chan struct{}, 1), attempt: make(chan struct{})}
}

// await returns the caller. If the link is down, it waits for an attempt to dial.
func (c *currentCaller) await(ctx context.Context) (*caller, error) {
	c.mu.Lock()
	current, attempt, closed := c.caller, c.attempt, c.closed
	c.mu.Unlock()
	switch {
	case current != nil:
		return current, nil
	case closed:
		return nil, ErrUnknownServer
	}
	select {
	case c.dialNow <- struct{}{}:
	default:
	}
	select {
	case <-attempt:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caller == nil {
		return nil, c.err
	}
	return c.caller, nil
}

// attemptDone records the result of an attempt to dial: the caller of a new connection, or an
// error.
func (c *currentCaller) attemptDone(caller *caller, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caller, c.err = caller, err
	close(c.attempt)
	c.attempt = make(chan struct{})
}

// down records that the connection has ended.
func (c *currentCaller) down(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caller, c.err = nil, err
}

// close fails all calls from now on.
func (c *currentCaller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caller, c.err, c.closed = nil, ErrUnknownServer, true
	close(c.attempt)
}

// caller makes calls over one connection.
type caller struct {
	takesCalls bool // the other end accepts calls
	write      func(kind websocket.MessageType, message []byte) error
	slots      chan struct{} // one element for each call in pending

	mu      sync.Mutex                   // guards the fields below
	last    int64                        // the id of the last call
	pending map[int64]chan answerMessage // by id; each channel has room for the answer
	ended   error                        // why no more answers come; nil until then
}

func newCaller(takesCalls bool, write func(websocket.MessageType, []byte) error) *caller {
	return &caller{
		takesCalls: takesCalls, write: write, slots: make(chan struct{}, maxCalls), pending: make(map[int64]chan answerMessage),
	}
}

func (c *caller) call(ctx context.Context, name string, body json.RawMessage) (json.RawMessage, error) {
	if !c.takesCalls {
		return nil, errCallsUnsupported
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	id, answered, err := c.begin()
	if err != nil {
		<-c.slots
		return nil, err
	}
	message, err := encodeMessage(callMessage{id, name, body})
	if err != nil {
		c.resolve(id)
		return nil, err
	}
	if err := c.write(websocket.MessageText, message); err != nil {
		return nil, err // the link ends too
	}
	select {
	case a, ok := <-answered:
		switch {
		case !ok:
			return nil, c.endErr()
		case a.Error != "":
			return nil, errors.New(a.Error)
		}
		return a.Answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *caller) begin() (id int64, answered chan answerMessage, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return 0, nil, c.ended
	}
	c.last++
	answered = make(chan answerMessage, 1)
	c.pending[c.last] = answered
	return c.last, answered, nil
}

// resolve removes a call from pending and returns its channel, or nil. A cancelled call stays
// pending until its answer arrives, so that the other end never has more than maxCalls.
func (c *caller) resolve(id int64) (answered chan answerMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered = c.pending[id]; answered != nil {
		delete(c.pending, id)
		<-c.slots
	}
	return answered
}

func (c *caller) endErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// readAnswers passes answers to their calls until the connection ends. Then the pending calls fail.
func (c *caller) readAnswers(ctx context.Context, conn *websocket.Conn) error {
	conn.SetReadLimit(maxMessage)
	for {
		kind, text, err := conn.Read(ctx)
		if err == nil && kind != websocket.MessageText {
			err = errMalformed
		}
		var a answerMessage
		if err == nil {
			err = json.Unmarshal(text, &a)
		}
		if err != nil {
			c.end(err)
			return err
		}
		if answered := c.resolve(a.ID); answered != nil {
			answered <- a
		}
	}
}

func (c *caller) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = err
	for _, answered := range c.pending {
		close(answered)
		<-c.slots
	}
	clear(c.pending)
}
