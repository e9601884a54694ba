package linear

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/state"
	"switchboard/queue"
)

// kind is what a call does.
type kind uint8

const (
	update    kind = iota // changes fields
	read                  // reads a page
	sweep                 // removes what is due
	note                  // appends an entry that changes no field
	ownerStep             // a client of the store or a server is connected, or has ended
	unknown               // an entry of a call without an answer, or of no call of a client
	loss                  // a failover, which is not a call of a client
)

// call is one call of a client.
type call struct {
	client     int
	kind       kind
	begin, end int64 // positions in the history; end is 0 without an answer

	push   queue.ChannelPush // of an update or a note
	number int64             // in the data of an update or a note; the retries of a push have the same
	query  queue.StateRead
	step   queue.StateStep
	keep   int64 // of a loss: id of the last entry that was kept

	// The answer.
	appended queue.Appended
	durable  bool           // a replica has confirmed the update
	refusal  *state.Refusal // of an update, else nil
	page     queue.StatePage
	stale    bool // of an ownerStep: the generation has ended
	optional bool // the ownerStep had no answer: it may not have happened

	// Of an unknown: its entry, and the steps that may have made it.
	entry      *state.Entry
	candidates [][]queue.StateStep
}

// answered reports whether the call has an answer.
func (c *call) answered() bool { return c.end > 0 }

func (c *call) String() string {
	what := [...]string{"update", "read", "sweep", "note", "step", "unknown", "loss"}[c.kind]
	text := fmt.Sprintf("[%d, %d] client %d: %s", c.begin, c.end, c.client, what)
	switch c.kind {
	case update:
		u := c.push.Update
		text += fmt.Sprintf(" %d key=%q by %s durable=%v\n    if %+v", c.number, c.push.Key, u.Writer, c.push.Durable, u.If)
		for _, op := range u.Ops {
			text += fmt.Sprintf("\n    %+v value=%s", op, op.Value)
		}
	case read:
		text += fmt.Sprintf(" %+v\n    at %d, clock %d, next %q:", c.query, c.page.ID, c.page.Clock, c.page.Next)
		for _, f := range c.page.Fields {
			text += fmt.Sprintf(" %s=%d:%s until %d", f.Name, f.ID, f.Value, f.Until())
		}
		return text
	case ownerStep:
		text += fmt.Sprintf(" %+v stale=%v", c.step, c.stale)
	case unknown:
		return text + fmt.Sprintf(": %d %s\n    %+v", c.appended.ID, c.appended.Data, c.candidates)
	case loss:
		return text + fmt.Sprintf(" of all above %d", c.keep)
	}
	text += fmt.Sprintf("\n    %d after %d, duplicate=%v, numbers %v", c.appended.ID, c.appended.Prev, c.appended.Duplicate, c.appended.Numbers)
	if c.refusal != nil {
		text += fmt.Sprintf(", refused: %s %s, group %q, max %d", c.refusal.Err.Code, c.refusal, c.refusal.Group, c.refusal.Max)
		for name, f := range c.refusal.Fields {
			text += fmt.Sprintf("\n        %s is %+v", name, f)
		}
	}
	return text
}

// history records the calls of concurrent clients.
type history struct {
	mu       sync.Mutex // guards the fields below
	position int64
	calls    []*call
	answers  int
	waiting  map[int]chan struct{} // by number of answers: closed when there are as many
	// overBrokers means that answers have neither the id before an entry nor the store's clock.
	overBrokers bool
	failure     error // the first error that neither refuses a call nor leaves it without an answer
}

func newHistory() *history { return &history{waiting: make(map[int]chan struct{})} }

// begin records the begin of a call.
func (h *history) begin(c *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.position++
	c.begin = h.position
	h.calls = append(h.calls, c)
}

// end records the end of a call, and its answer.
func (h *history) end(c *call, answer func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.position++
	c.end = h.position
	answer()
	h.answers++
	if reached, found := h.waiting[h.answers]; found {
		close(reached)
		delete(h.waiting, h.answers)
	}
}

// after returns a channel that is closed when n more calls have been answered.
func (h *history) after(n int) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	reached := make(chan struct{})
	h.waiting[h.answers+n] = reached
	return reached
}

// failed records an error that no fault explains.
func (h *history) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failure == nil && !isNoAnswer(err) {
		h.failure = err
	}
}

// isNoAnswer reports whether a call that failed with err may or may not have happened.
func isNoAnswer(err error) bool {
	if refused, ok := errors.AsType[redis.Error](err); ok { // Redis has answered
		code, _, _ := strings.Cut(refused.Error(), " ")
		return slices.Contains([]string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "UNBLOCKED"}, code)
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, errNoAnswer) || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// append pushes, and reports whether there was an answer.
func (h *history) append(do func(queue.ChannelPush) (queue.Appended, error), c *call) bool {
	h.begin(c)
	a, err := do(c.push)
	refusal, refused := errors.AsType[*state.Refusal](err)
	if err != nil && !refused && !errors.Is(err, queue.ErrNotReplicated) {
		h.failed(err)
		return false
	}
	h.end(c, func() {
		c.appended, c.refusal = a, refusal
		c.durable = c.push.Durable && err == nil
	})
	return true
}
