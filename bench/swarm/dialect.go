package swarm

import (
	"fmt"

	"github.com/gobwas/ws"
)

// Dialect is the protocol of one kind of server. A Swarm calls it only from its own goroutine, so
// it may keep state without a lock. The [Connection] keeps the position of one client.
type Dialect interface {
	// NextFrame returns the frame at the start of buf; size is 0 if it is incomplete. [NextWebSocket]
	// reads WebSocket frames, whose pings the Swarm answers, and [NextLine] reads lines.
	NextFrame(buf []byte) (f Frame, size int, err error)
	// Upgrade returns the request that opens a WebSocket, see [Upgrade], or nil for none.
	Upgrade(c Connection) []byte
	// Subscribe is called when the connection is established and upgraded. It sends the subscription
	// to c.Channel, or the first part of it. It calls c.Ready if nothing needs to be sent.
	Subscribe(c Connection) error
	// Handle handles a frame. It calls c.Ready when the subscription is confirmed, c.Deliver for each
	// message of the channel, and c.Send for answers. body is valid during the call.
	Handle(c Connection, body []byte) error
}

// Connection is one connection as seen by its dialect.
type Connection struct {
	s *Swarm
	i int
}

func (c Connection) conn() *conn { return &c.s.conns[c.i] }

// Client returns the client id. It stays the same after [Swarm.Reconnect].
func (c Connection) Client() string { return c.s.client(c.i) }

// Channel returns the name of the connection's channel.
func (c Connection) Channel() string { return c.s.opts.Channels[c.conn().progress.channel] }

// ChannelIndex returns the index of that channel.
func (c Connection) ChannelIndex() int { return int(c.conn().progress.channel) }

// Position returns the position at which the client resumes: the last one passed to SetPosition or
// Deliver. It outlives the connection.
func (c Connection) Position() int64 { return c.conn().position }

// SetPosition sets the position.
func (c Connection) SetPosition(position int64) { c.conn().position = position }

// Resuming reports whether the client was connected before.
func (c Connection) Resuming() bool { return c.s.reconnecting }

// Ready marks the subscription as confirmed.
func (c Connection) Ready() error {
	conn := c.conn()
	if conn.state == ready {
		return fmt.Errorf("second answer to one subscribe")
	}
	c.s.markReady(conn)
	return nil
}

// Deliver delivers a message of the channel with its payload and its position in the server's
// numbering, 0 for none.
func (c Connection) Deliver(payload []byte, position int64) {
	if position != 0 {
		c.conn().position = position
	}
	c.s.deliver(c.i, payload)
}

// Unexpected reports a message that must not arrive on this connection. It is a fault.
func (c Connection) Unexpected(message []byte) {
	c.s.received++
	c.s.checker.fault("%s: a message that was not pushed: %.120q", c.s.describe(c.i), message)
}

// Send writes the bytes unchanged.
func (c Connection) Send(p []byte) error { return c.s.write(c.conn(), p) }

// SendText writes a masked text frame.
func (c Connection) SendText(text []byte) error {
	p, err := TextFrame(text)
	if err != nil {
		return err
	}
	return c.Send(p)
}

// TextFrame returns a masked text frame.
func TextFrame(text []byte) ([]byte, error) {
	return ws.CompileFrame(ws.MaskFrame(ws.NewTextFrame(text)))
}
