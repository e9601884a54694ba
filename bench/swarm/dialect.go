package swarm

import (
	"fmt"

	"github.com/gobwas/ws"
)

// Dialect is the protocol that subscribers speak with one kind of server. A Swarm calls it
// on its own goroutine only, so it may hold state without a lock; what it holds of one
// connection it should ask of the [Link], which has room for a step and a position.
type Dialect interface {
	// Cut takes the message at the head of buf; size is 0 while it is incomplete. [CutFrame] is that of
	// WebSocket, whose pings the Swarm answers itself, and [CutLine] that of lines.
	Cut(buf []byte) (u Unit, size int, err error)
	// Upgrade is the request that opens a WebSocket, see [Upgrade]; nil for none.
	Upgrade(l Link) []byte
	// Greet begins, as soon as the connection stands and is upgraded: it sends what makes the connection a
	// subscriber of l.Channel, or the first part of that, or calls l.Ready when there is nothing to say.
	Greet(l Link) error
	// Read acts on what came: it calls l.Ready when the subscription is confirmed, l.Message for each
	// message of the channel, l.Send to answer. body is valid during the call.
	Read(l Link, body []byte) error
	// Ping is what a client says to hear something back (then Read calls l.Ponged), nil where there is no such thing.
	Ping() []byte
}

// Link is one connection as its dialect sees it.
type Link struct {
	s *Swarm
	i int
}

func (l Link) conn() *conn { return &l.s.conns[l.i] }

// Index is the number of the connection, from 0.
func (l Link) Index() int { return l.i }

// Client is the connection's client id, the same after [Swarm.Reopen].
func (l Link) Client() string { return l.s.client(l.i) }

// Channel is the name of the one channel that the connection follows.
func (l Link) Channel() string { return l.s.opts.Channels[l.conn().place.channel] }

// ChannelIndex is the number of that channel.
func (l Link) ChannelIndex() int { return int(l.conn().place.channel) }

// Step is how far the dialect has come with this connection; it is 0 at Greet.
func (l Link) Step() uint8 { return l.conn().step }

// SetStep sets it.
func (l Link) SetStep(step uint8) { l.conn().step = step }

// Position is what SetPosition or Message were last given: where the client resumes. It outlives a connection.
func (l Link) Position() int64 { return l.conn().position }

// SetPosition sets it.
func (l Link) SetPosition(position int64) { l.conn().position = position }

// Resuming says whether the client was connected before and was cut off.
func (l Link) Resuming() bool { return l.s.reopened }

// Ready says that the subscription is confirmed.
func (l Link) Ready() error {
	c := l.conn()
	if c.state == ready {
		return fmt.Errorf("a second answer to one subscribe")
	}
	l.s.isReady(c)
	return nil
}

// Message gives a message of the channel: its payload, and its position in the server's
// numbering, 0 where there is none.
func (l Link) Message(payload []byte, position int64) {
	if position != 0 {
		l.conn().position = position
	}
	l.s.message(l.i, payload, position)
}

// Stray gives a message that nobody was to receive here: a fault.
func (l Link) Stray(message []byte) {
	l.s.received++
	l.s.ledger.fault("%s: a message that was not pushed: %.120q", l.s.who(l.i), message)
}

// Ponged says that an answer to Ping came.
func (l Link) Ponged() { l.s.pongs++ }

// Send writes bytes as they are.
func (l Link) Send(p []byte) error { return l.s.write(l.conn(), p) }

// SendText writes a text frame, masked as the clients of a WebSocket must.
func (l Link) SendText(text []byte) error {
	p, err := TextFrame(text)
	if err != nil {
		return err
	}
	return l.Send(p)
}

// TextFrame is a masked text frame.
func TextFrame(text []byte) ([]byte, error) {
	return ws.CompileFrame(ws.MaskFrame(ws.NewTextFrame(text)))
}
