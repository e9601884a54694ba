//go:build long

package attack

import (
	"context"
	"encoding/json"
	"fmt"

	"switchboard/internal/textconn"
)

// sharedChannel is the channel of all honest clients.
const sharedChannel = "hall:shared"

// An honestClient is a client that does not attack.
type honestClient struct {
	name string // of the client and its user
	conn textconn.Conn
}

// An event is a message from the broker.
type event struct {
	Type, Channel, Code, Message string
	Client, Secret               string
	ID, Ref                      int64
	Data                         json.RawMessage
}

// A payload is the data of message N of a stream.
type payload struct {
	Stream string `json:"stream"`
	N      int    `json:"n"`
}

// connectHonest connects a client and subscribes it to the shared channel.
func connectHonest(ctx context.Context, b *broker, tr transport, name, token string) (*honestClient, error) {
	conn, err := tr.dial(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("%s cannot connect: %w", name, err)
	}
	h := &honestClient{name: name, conn: conn}
	for _, step := range []struct{ request, want string }{
		{fmt.Sprintf(`{"type":"connect","client":%q,"token":%q}`, name, token), "connected"},
		{fmt.Sprintf(`{"type":"subscribe","channel":%q}`, sharedChannel), "subscribed"},
	} {
		err := conn.Send(ctx, step.request)
		if err == nil {
			_, err = h.next(ctx, step.want)
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
	}
	return h, nil
}

// next reads up to an event of this type. Errors and gaps are failures.
func (h *honestClient) next(ctx context.Context, typ string) (e event, err error) {
	for e.Type != typ {
		text, err := h.conn.Receive(ctx)
		if err != nil {
			return e, fmt.Errorf("%s did not receive %s: %w", h.name, typ, err)
		}
		e = event{}
		if err := json.Unmarshal(text, &e); err != nil {
			return e, fmt.Errorf("%s received %.200q: %w", h.name, text, err)
		}
		if e.Type == "error" || e.Type == "closing" || e.Type == "gap" {
			return e, fmt.Errorf("%s received %.200s", h.name, text)
		}
		if e.Type == "ping" {
			if err := h.conn.Send(ctx, `{"type":"pong"}`); err != nil {
				return e, fmt.Errorf("%s cannot answer a ping: %w", h.name, err)
			}
		}
	}
	return e, nil
}

// receive reads the next message and acknowledges it.
func (h *honestClient) receive(ctx context.Context) (p payload, err error) {
	e, err := h.next(ctx, "message")
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return p, fmt.Errorf("%s received %.200s: %w", h.name, e.Data, err)
	}
	if e.Channel == "" {
		err = h.conn.Send(ctx, fmt.Sprintf(`{"type":"ack","id":%d}`, e.ID))
	}
	return p, err
}

// publish publishes message n of the client to the shared channel.
func (h *honestClient) publish(ctx context.Context, n int) error {
	return h.conn.Send(ctx, fmt.Sprintf(`{"type":"publish","channel":%q,"data":{"stream":%q,"n":%d}}`, sharedChannel, h.name, n))
}
