package peer

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/coder/websocket"
)

// callers gives calls the link's connection of the moment. A call that finds the link down has it
// dialled at once, and waits for what comes of that.
type callers struct {
	want chan struct{} // one slot: a call waits for a connection

	mu      sync.Mutex    // guards the fields below
	now     *caller       // nil while the link is down
	err     error         // why it is down
	attempt chan struct{} // closed at the end of the attempt to dial that goes on, or comes next
	over    bool          // there are no more attempts
}

func newCallers() *callers {
	return &callers{want: make(chan struct{}, 1), attempt: make(chan struct{})}
}

// current waits for a connection. The error is that of the attempt to get one.
func (c *callers) current(ctx context.Context) (*caller, error) {
	c.mu.Lock()
	now, attempt, over := c.now, c.attempt, c.over
	c.mu.Unlock()
	switch {
	case now != nil:
		return now, nil
	case over:
		return nil, ErrUnknownServer
	}
	select {
	case c.want <- struct{}{}:
	default:
	}
	select {
	case <-attempt:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil {
		return nil, c.err
	}
	return c.now, nil
}

// tried notes the end of an attempt: a connection, or an error.
func (c *callers) tried(now *caller, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.err = now, err
	close(c.attempt)
	c.attempt = make(chan struct{})
}

// down notes that the connection is gone.
func (c *callers) down(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.err = nil, err
}

// close fails all calls from now on.
func (c *callers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.err, c.over = nil, ErrUnknownServer, true
	close(c.attempt)
}

// caller makes calls over one connection.
type caller struct {
	able  bool // the other end takes calls
	write func(kind websocket.MessageType, message []byte) error
	turns chan struct{} // one for each in pending

	mu      sync.Mutex                   // guards the fields below
	last    int64                        // the id of the last call
	pending map[int64]chan answerMessage // each has room for its answer
	ended   error                        // why there are no more answers
}

func newCaller(able bool, write func(websocket.MessageType, []byte) error) *caller {
	return &caller{
		able: able, write: write, turns: make(chan struct{}, maxCalls), pending: make(map[int64]chan answerMessage),
	}
}

func (c *caller) call(ctx context.Context, name string, body json.RawMessage) (json.RawMessage, error) {
	if !c.able {
		return nil, errNoCalls
	}
	select {
	case c.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	id, answered, err := c.begin()
	if err != nil {
		<-c.turns
		return nil, err
	}
	message, err := encodeMessage(callMessage{id, name, body})
	if err != nil {
		c.take(id)
		return nil, err
	}
	if err := c.write(websocket.MessageText, message); err != nil {
		return nil, err // and the link ends
	}
	select {
	case a, ok := <-answered:
		switch {
		case !ok:
			return nil, c.why()
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

// take ends the wait for an answer. A call that was given up waits on, so that the other end never
// has more of them.
func (c *caller) take(id int64) (answered chan answerMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered = c.pending[id]; answered != nil {
		delete(c.pending, id)
		<-c.turns
	}
	return answered
}

func (c *caller) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// hear hands answers on until the connection ends; then the calls under way fail.
func (c *caller) hear(ctx context.Context, conn *websocket.Conn) error {
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
		if answered := c.take(a.ID); answered != nil {
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
		<-c.turns
	}
	clear(c.pending)
}
