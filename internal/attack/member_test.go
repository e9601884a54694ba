package attack

import (
	"context"
	"encoding/json"
	"fmt"

	"switchboard/internal/textconn"
)

// plaza is where the whole crowd is.
const plaza = "room:plaza"

// member is a well-behaved client.
type member struct {
	name string // of the client and of its user
	conn textconn.Conn
}

// event is what the broker says.
type event struct {
	Type, Channel, Code, Message string
	Client, Secret               string
	ID, Ref                      int64
	Data                         json.RawMessage
}

// payload is what the crowd and its backend tell each other: the n-th of a stream.
type payload struct {
	Stream string `json:"stream"`
	N      int    `json:"n"`
}

// join connects a client that follows the plaza.
func join(ctx context.Context, v *victim, w way, name, token string) (*member, error) {
	conn, err := w.dial(ctx, v)
	if err != nil {
		return nil, fmt.Errorf("%s cannot come in: %w", name, err)
	}
	m := &member{name: name, conn: conn}
	for _, step := range []struct{ say, want string }{
		{fmt.Sprintf(`{"type":"connect","client":%q,"token":%q}`, name, token), "connected"},
		{fmt.Sprintf(`{"type":"subscribe","channel":%q}`, plaza), "subscribed"},
	} {
		err := conn.Send(ctx, step.say)
		if err == nil {
			_, err = m.next(ctx, step.want)
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
	}
	return m, nil
}

// next reads on until an event of that type.
func (m *member) next(ctx context.Context, typ string) (e event, err error) {
	for e.Type != typ {
		text, err := m.conn.Receive(ctx)
		if err != nil {
			return e, fmt.Errorf("%s was not told %s: %w", m.name, typ, err)
		}
		e = event{}
		if err := json.Unmarshal(text, &e); err != nil {
			return e, fmt.Errorf("%s was told %.200q: %w", m.name, text, err)
		}
		if e.Type == "error" || e.Type == "closing" || e.Type == "gap" {
			return e, fmt.Errorf("%s was told %.200s", m.name, text)
		}
		if e.Type == "ping" {
			if err := m.conn.Send(ctx, `{"type":"pong"}`); err != nil {
				return e, fmt.Errorf("%s cannot answer a ping: %w", m.name, err)
			}
		}
	}
	return e, nil
}

// take reads the next message, and acknowledges it.
func (m *member) take(ctx context.Context) (p payload, err error) {
	e, err := m.next(ctx, "message")
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return p, fmt.Errorf("%s was sent %.200s: %w", m.name, e.Data, err)
	}
	if e.Channel == "" {
		err = m.conn.Send(ctx, fmt.Sprintf(`{"type":"ack","id":%d}`, e.ID))
	}
	return p, err
}

// publish says something to the plaza.
func (m *member) publish(ctx context.Context, n int) error {
	return m.conn.Send(ctx, fmt.Sprintf(`{"type":"publish","channel":%q,"data":{"stream":%q,"n":%d}}`, plaza, m.name, n))
}
