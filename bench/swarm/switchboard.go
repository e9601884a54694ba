package swarm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"switchboard/broker/dialect/native"
	"switchboard/internal/wire"
)

// Switchboard is this project's own protocol. Use a Switchboard for one Swarm only.
type Switchboard struct {
	// Addr and Path are those of the WebSocket. An empty Path means raw TCP with lines.
	Addr, Path string
	// Queue means that messages come from the client's own queue and not from a channel. Connect asks
	// the broker to acknowledge each message itself after writing it.
	Queue bool
	// Users makes each client a separate user with the client's name.
	Users bool
	// Field subscribes with the state of the channel. The messages are then changes of this field, and
	// the payload is its value. A connection is ready after the last page of the state.
	Field string
	// Presence subscribes with the presence of the channel, see [SwitchboardCursors].
	Presence bool

	messageHeads [][]byte // start of a message by channel
	changeHead   []byte   // between the id of a change of Field and its value
	pong         []byte
}

// dataHead is between the id of a message and its payload.
var dataHead = []byte(`,"data":`)

// headAndTail returns the bytes between the id of a message and its payload, and the bytes after
// the payload.
func (d *Switchboard) headAndTail() (head, tail []byte) {
	if d.Field == "" {
		return dataHead, messageTail
	}
	if d.changeHead == nil {
		d.changeHead = fmt.Appendf(nil, `,"set":{%q:`, d.Field)
	}
	return d.changeHead, changeTail
}

var (
	messageTail = []byte("}")
	changeTail  = []byte("}}")
)

// NextFrame implements [Dialect].
func (d *Switchboard) NextFrame(buf []byte) (Frame, int, error) {
	if d.Path != "" {
		return NextWebSocket(buf)
	}
	return NextLine(buf)
}

// Upgrade implements [Dialect].
func (d *Switchboard) Upgrade(Connection) []byte {
	if d.Path == "" {
		return nil
	}
	return Upgrade(d.Addr, d.Path)
}

// Subscribe sends connect and subscribe in one write.
func (d *Switchboard) Subscribe(c Connection) error {
	connect := wire.Request{
		Type: wire.TypeConnect, Ref: wire.RefOf(1), Client: c.Client(), Secret: secretOf(c.Client()),
	}
	if d.Users {
		connect.User, connect.Secret = c.Client(), "" // a connect with a user needs no secret
	}
	if d.Queue {
		connect.Ack = "auto"
		return c.Send(d.encode(connect))
	}
	subscribe := wire.Request{Type: wire.TypeSubscribe, Ref: wire.RefOf(2), Channel: c.Channel()}
	if d.Field != "" {
		subscribe.StateRequest = &wire.StateRequest{State: &wire.Selector{}}
	}
	subscribe.Presence = d.Presence
	if c.Resuming() {
		after := c.Position()
		subscribe.After = &after
	}
	return c.Send(append(d.encode(connect), d.encode(subscribe)...))
}

// secretOf returns the secret of a client, which is the same after reconnecting.
func secretOf(client string) string { return "the secret of " + client }

// encode encodes and frames a request. It panics if this fails, which no request of this package
// causes.
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

// messageHeadOf returns the start of each message on the connection.
func (d *Switchboard) messageHeadOf(c Connection) []byte {
	channel := c.ChannelIndex()
	for len(d.messageHeads) <= channel {
		d.messageHeads = append(d.messageHeads, nil)
	}
	if d.messageHeads[channel] == nil {
		d.messageHeads[channel] = messageHead(d.messageChannel(c))
	}
	return d.messageHeads[channel]
}

// messageChannel returns the channel in the messages, "" for the client's own queue.
func (d *Switchboard) messageChannel(c Connection) string {
	if d.Queue {
		return ""
	}
	return c.Channel()
}

// messageHead returns the start of each message of the channel.
func messageHead(channel string) []byte {
	whole := native.New(0).Message(channel, 0, []byte("0")).Prepared.Payload()
	return bytes.TrimSuffix(whole, []byte(`0,"data":0}`))
}

// Handle implements [Dialect].
func (d *Switchboard) Handle(c Connection, body []byte) error {
	if id, rest, ok := parseNumber(body, d.messageHeadOf(c)); ok {
		head, tail := d.headAndTail()
		data, hasHead := bytes.CutPrefix(rest, head)
		if data, hasTail := bytes.CutSuffix(data, tail); hasHead && hasTail {
			c.Deliver(data, id)
			return nil
		}
	}
	return d.event(c, body)
}

// event handles an event that is not a message in the broker's usual notation.
func (d *Switchboard) event(c Connection, body []byte) error {
	e, err := wire.DecodeEvent(body)
	if err != nil {
		return fmt.Errorf("%.80q: %w", body, err)
	}
	switch e.Type {
	case wire.TypeConnected:
		if d.Queue {
			return c.Ready()
		}
		return nil
	case wire.TypeSubscribed:
		return d.subscribed(c, e)
	case wire.TypeState:
		if d.Field == "" || e.More {
			return nil
		}
		return c.Ready()
	case wire.TypePing:
		if d.pong == nil {
			d.pong = d.encode(wire.Request{Type: wire.TypePong})
		}
		return c.Send(d.pong)
	case wire.TypeMessage:
		if e.ID != nil && d.Field == "" && e.Channel == d.messageChannel(c) {
			c.Deliver(e.Data, *e.ID) // a message in another notation
			return nil
		}
		c.Unexpected(body)
		return nil
	}
	return fmt.Errorf("the server sent %.200s", body)
}

func (d *Switchboard) subscribed(c Connection, e wire.Event) error {
	switch {
	case c.Resuming() && (e.Recovered == nil || !*e.Recovered):
		return errors.New("the server has not kept what the client missed")
	case !c.Resuming() && e.ID != nil:
		c.SetPosition(*e.ID)
	}
	if d.Field != "" {
		return nil // the pages follow
	}
	return c.Ready()
}

// SendOnly is the protocol of a server that only sends, in the broker's format. Connections are
// ready as soon as they are established.
type SendOnly struct{ Switchboard }

// Upgrade implements [Dialect].
func (d *SendOnly) Upgrade(Connection) []byte { return nil }

// Subscribe implements [Dialect].
func (d *SendOnly) Subscribe(c Connection) error { return c.Ready() }
