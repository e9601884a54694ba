package swarm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"switchboard/broker/dialect/native"
	"switchboard/internal/wire"
)

// Switchboard is this project's own protocol. It is for one Swarm.
type Switchboard struct {
	// Addr and Path open a WebSocket. Zero of Path means raw TCP, one message a line.
	Addr, Path string
	// Queue makes a connection ready when it is connected: the messages come from the client's own queue, and are
	// acknowledged by the broker itself when they are written.
	Queue bool
	// Users makes each client a user of its own, with the client's name.
	Users bool

	heads      [][]byte // by channel: what a message begins with
	ping, pong []byte
}

// dataHead stands between the id of a message and its payload.
var dataHead = []byte(`,"data":`)

// Cut implements [Dialect].
func (d *Switchboard) Cut(buf []byte) (Unit, int, error) {
	if d.Path != "" {
		return CutFrame(buf)
	}
	return CutLine(buf)
}

// Upgrade implements [Dialect].
func (d *Switchboard) Upgrade(Link) []byte {
	if d.Path == "" {
		return nil
	}
	return Upgrade(d.Addr, d.Path)
}

// Greet sends connect and subscribe in one write.
func (d *Switchboard) Greet(l Link) error {
	connect := wire.Request{
		Type: wire.TypeConnect, Ref: wire.RefOf(1), Client: l.Client(), Secret: "the secret of " + l.Client(), // the same when it comes back
	}
	if d.Users {
		connect.User, connect.Secret = l.Client(), "" // the user takes its place
	}
	if d.Queue {
		connect.Ack = "auto"
		return l.Send(d.encode(connect))
	}
	subscribe := wire.Request{Type: wire.TypeSubscribe, Ref: wire.RefOf(2), Channel: l.Channel()}
	if l.Resuming() {
		after := l.Position()
		subscribe.After = &after
	}
	return l.Send(append(d.encode(connect), d.encode(subscribe)...))
}

// Ping implements [Dialect].
func (d *Switchboard) Ping() []byte {
	if d.ping == nil {
		d.ping = d.encode(wire.Request{Type: wire.TypePing})
	}
	return d.ping
}

// encode is r as it goes out. No request of this package fails to encode.
func (d *Switchboard) encode(r wire.Request) []byte {
	body, err := json.Marshal(r)
	if err == nil && d.Path != "" {
		body, err = TextFrame(body)
	} else {
		body = append(body, '\n')
	}
	if err != nil {
		panic(err)
	}
	return body
}

// head is what a message of the connection's queue begins with.
func (d *Switchboard) head(l Link) []byte {
	channel := l.ChannelIndex()
	for len(d.heads) <= channel {
		d.heads = append(d.heads, nil)
	}
	if d.heads[channel] == nil {
		d.heads[channel] = messageHead(d.queue(l))
	}
	return d.heads[channel]
}

// queue is the channel that messages name: none for the client's own queue.
func (d *Switchboard) queue(l Link) string {
	if d.Queue {
		return ""
	}
	return l.Channel()
}

// messageHead is how the broker begins a message of channel.
func messageHead(channel string) []byte {
	whole := native.New(0).Message(channel, 0, []byte("0")).Packed.Payload()
	return bytes.TrimSuffix(whole, []byte(`0,"data":0}`))
}

// Read implements [Dialect].
func (d *Switchboard) Read(l Link, body []byte) error {
	if id, rest, ok := number(body, d.head(l)); ok {
		if data, ok := bytes.CutPrefix(rest, dataHead); ok && len(data) > 0 && data[len(data)-1] == '}' {
			l.Message(data[:len(data)-1], id)
			return nil
		}
	}
	return d.event(l, body)
}

// event acts on what is not a message in the broker's usual notation.
func (d *Switchboard) event(l Link, body []byte) error {
	e, err := wire.DecodeEvent(body)
	if err != nil {
		return fmt.Errorf("%.80q: %w", body, err)
	}
	switch e.Type {
	case wire.TypeConnected:
		if d.Queue {
			return l.Ready()
		}
		return nil
	case wire.TypeSubscribed:
		return d.subscribed(l, e)
	case wire.TypePing:
		if d.pong == nil {
			d.pong = d.encode(wire.Request{Type: wire.TypePong})
		}
		return l.Send(d.pong)
	case wire.TypePong:
		l.Ponged()
		return nil
	case wire.TypeMessage:
		if e.ID != nil && e.Channel == d.queue(l) {
			l.Message(e.Data, *e.ID) // the same in another notation
			return nil
		}
		l.Stray(body)
		return nil
	}
	return fmt.Errorf("the server sent %.200s", body)
}

func (d *Switchboard) subscribed(l Link, e wire.Event) error {
	switch {
	case l.Resuming() && (e.Recovered == nil || !*e.Recovered):
		return errors.New("the server has not kept what the client missed")
	case !l.Resuming() && e.ID != nil:
		l.SetPosition(*e.ID)
	}
	return l.Ready()
}

// Silent is a server that sends what a broker would, to whoever connects: connections are ready once they stand.
type Silent struct{ Switchboard }

// Upgrade implements [Dialect].
func (d *Silent) Upgrade(Link) []byte { return nil }

// Greet implements [Dialect].
func (d *Silent) Greet(l Link) error { return l.Ready() }

// Ping implements [Dialect].
func (d *Silent) Ping() []byte { return nil }
