package session

import (
	"context"

	"switchboard/internal/wire"
)

// Description is what a backend sees of a session.
type Description struct {
	Address  string   // the peer's host:port, which may be a proxy
	Expires  int64    // when the token ends, Unix seconds; 0 for never
	Channels []string // in the order of their subscriptions, without system channels
}

// Describe describes the session of a client. It waits for the session's loop until ctx ends. known
// is false if the client has no session here.
func (m *Manager) Describe(ctx context.Context, client string) (d Description, known bool, err error) {
	found := make(chan *Description, 1)
	known = m.onLoop(client, func(s *Session) {
		if s.state != open {
			found <- nil
			return
		}
		d := Description{Address: s.conn.RemoteAddr(), Expires: int64(s.expires), Channels: []string{}}
		for sub := range s.subs() {
			if !wire.IsSystem(sub.Channel.Name) {
				d.Channels = append(d.Channels, sub.Channel.Name)
			}
		}
		found <- &d
	})
	if !known {
		return d, false, nil
	}
	select {
	case got := <-found:
		if got == nil {
			return d, false, nil
		}
		return *got, true, nil
	case <-ctx.Done():
		return d, false, ctx.Err()
	}
}
