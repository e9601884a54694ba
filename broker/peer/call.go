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
	// maxMessage is the longest message of a link in either direction, in bytes.
	maxMessage = 1 << 20
)

// ErrUnknownServer is returned for a call to a server that is not live, or to this server itself.
var ErrUnknownServer = errors.New("peer: no such live server")

var (
	errTooLarge         = fmt.Errorf("the message has more than %d bytes", maxMessage)
	errCallsUnsupported = errors.New("the other server has another version, which does not accept calls over its link")
)

// callMessage is the JSON of a call.
type callMessage struct {
	ID   int64           `json:"id"`
	Call string          `json:"call"`
	Body json.RawMessage `json:"body"`
}

// answerMessage is the JSON of an answer: a result or an error.
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

// HandleCall registers f to answer the calls with a name. The caller receives the result of f as
// JSON, or the text of its error. Call HandleCall before Handler serves.
func (l *Links) HandleCall(name string, f func(ctx context.Context, body json.RawMessage) (any, error)) {
	l.calls[name] = f
}

// Call calls name on a live server and stores the answer in out, unless out is nil. The body of the
// call is in, as JSON. The error contains the text of the other server's error. It wraps
// ErrUnknownServer if the server is not live.
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
	c, err := k.caller.await(ctx)
	if err != nil {
		return err
	}
	answer, err := c.call(ctx, name, body)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}
