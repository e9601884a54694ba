//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"time"

	"switchboard/internal/cond"
	"switchboard/internal/testbed"
	"switchboard/internal/textconn"
)

// A follower is subscribed to one channel with its state, and keeps all messages.
type follower struct {
	conn textconn.Conn

	cond.Cond // guards the fields below
	pages     fieldIDs
	series    int64 // id of the pages
	messages  []stateMessage
	times     []time.Time // of the messages
	err       error       // the end of the connection
}

// dialState connects a client over TCP, subscribes it with the state, and reads up to the last
// page.
func dialState(ctx context.Context, b *testbed.Broker, user, client, channel string) (*follower, error) {
	conn, err := textconn.DialTCP(ctx, net.Dialer{}, b.TCP)
	if err != nil {
		return nil, err
	}
	f := &follower{conn: conn, pages: fieldIDs{}}
	if err = f.subscribe(ctx, user, client, channel); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", client, err)
	}
	return f, nil
}

func (f *follower) subscribe(ctx context.Context, user, client, channel string) error {
	err := f.conn.Send(ctx, fmt.Sprintf(`{"type":"connect","client":%q,"user":%q}`+"\n"+
		`{"type":"subscribe","channel":%q,"state":true}`, client, user, channel))
	for err == nil {
		var text []byte
		if text, err = f.conn.Receive(ctx); err != nil {
			break
		}
		var m struct {
			Type   string
			ID     int64
			More   bool
			Fields map[string]field
		}
		if err = json.Unmarshal(text, &m); err != nil {
			break
		}
		switch m.Type {
		case "connected", "subscribed":
		case "state":
			for name, field := range m.Fields {
				f.pages[name] = field.id()
			}
			if f.series = m.ID; !m.More {
				return nil
			}
		default:
			err = fmt.Errorf("received %s instead of pages", text)
		}
	}
	return err
}

// follow subscribes a client and then keeps all messages, until the end of the test.
func follow(ctx context.Context, t *testing.T, b *testbed.Broker, channel string) *follower {
	t.Helper()
	f, err := dialState(ctx, b, "follower", "tab", channel)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.run(ctx)
	}()
	t.Cleanup(func() { f.conn.Close(); <-ended })
	return f
}

func (f *follower) run(ctx context.Context) {
	for {
		text, err := f.conn.Receive(ctx)
		var m stateMessage
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		switch {
		case err != nil:
		case m.Type == "ping":
			err = f.conn.Send(ctx, `{"type":"pong"}`)
		case m.Type != "message":
			err = fmt.Errorf("received %s", text)
		}
		f.Change(func() {
			if err != nil {
				f.err = err
			} else if m.Type == "message" {
				f.messages, f.times = append(f.messages, m), append(f.times, time.Now())
			}
		})
		if err != nil {
			return
		}
	}
}

// await waits until done returns true for the messages up to now.
func (f *follower) await(ctx context.Context, t *testing.T, what string, done func([]stateMessage) bool) {
	t.Helper()
	met := false
	err := f.Await(ctx, func() bool {
		met = done(f.messages)
		return met || f.err != nil
	})
	if !met {
		f.Lock()
		defer f.Unlock()
		last := f.messages[max(0, len(f.messages)-5):]
		t.Fatalf("%s: %v, %v; the last messages are %+v", what, err, f.err, last)
	}
}
