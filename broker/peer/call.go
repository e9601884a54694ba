package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	callTimeout = 5 * time.Second
	// maxMessage is the most bytes of a message of a link, whichever way.
	maxMessage = 1 << 20
)

// ErrUnknownServer is returned for a call to a server that is not among the live ones, or
// that is this one.
var ErrUnknownServer = errors.New("peer: no such live server")

var (
	errTooLarge = fmt.Errorf("the message has more than %d bytes", maxMessage)
	errNoCalls  = errors.New("the other server does not take calls over its link: it is of another version")
)

// callMessage is a call as it is sent.
type callMessage struct {
	ID   int64           `json:"id"`
	Call string          `json:"call"`
	Body json.RawMessage `json:"body"`
}

// answerMessage is what comes back: an answer, or an error.
type answerMessage struct {
	ID     int64           `json:"id"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// encodeMessage encodes a call or an answer.
func encodeMessage(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err == nil && len(text) > maxMessage {
		err = errTooLarge
	}
	return text, err
}

// HandleCall answers the calls of one name. The result of f is sent as JSON, and the text of its
// error to the caller. It must be called before the Handler serves.
func (l *Links) HandleCall(name string, f func(ctx context.Context, body json.RawMessage) (any, error)) {
	l.calls[name] = f
}

// Call asks a live server, sending in and storing the answer in out, unless that is nil. An
// error says what the other server said, if it did; it is ErrUnknownServer when the server is not live.
func (l *Links) Call(ctx context.Context, server, name string, in, out any) error {
	if err := l.call(ctx, server, name, in, out); err != nil {
		return fmt.Errorf("call %s of server %s: %w", name, server, err)
	}
	return nil
}

func (l *Links) call(ctx context.Context, server, name string, in, out any) error {
	k := l.link(server)
	if k == nil {
		return ErrUnknownServer
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := k.callers.current(ctx)
	if err != nil {
		return err
	}
	answer, err := c.call(ctx, name, body)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}
