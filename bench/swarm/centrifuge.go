package swarm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Centrifuge is the JSON protocol of the centrifuge library over WebSocket. A frame holds one or
// more JSON objects on separate lines. Use a Centrifuge for one Swarm only.
type Centrifuge struct {
	Addr string

	epochs []string // epoch of the stream by channel
	pong   []byte
}

// centrifugeReply is an object from the server. {} is a ping.
type centrifugeReply struct {
	ID    uint32 `json:"id"`
	Error *struct {
		Code    uint32 `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Connect   *struct{}            `json:"connect"`
	Subscribe *centrifugeSubscribe `json:"subscribe"`
	Push      *struct {
		Channel string         `json:"channel"`
		Pub     *centrifugePub `json:"pub"`
	} `json:"push"`
}

// centrifugeSubscribe is the answer to a subscribe.
type centrifugeSubscribe struct {
	Epoch        string          `json:"epoch"`
	Offset       int64           `json:"offset"`
	Recovered    bool            `json:"recovered"`
	Publications []centrifugePub `json:"publications"`
}

// centrifugePub is a message.
type centrifugePub struct {
	Data   json.RawMessage `json:"data"`
	Offset int64           `json:"offset"`
}

// NextFrame implements [Dialect].
func (*Centrifuge) NextFrame(buf []byte) (Frame, int, error) { return NextWebSocket(buf) }

// Upgrade implements [Dialect].
func (d *Centrifuge) Upgrade(Connection) []byte { return Upgrade(d.Addr, "/connection/websocket") }

// Subscribe sends connect and subscribe in one frame.
func (d *Centrifuge) Subscribe(c Connection) error {
	recovery := ""
	if c.Resuming() {
		recovery = fmt.Sprintf(`,"recover":true,"epoch":%q,"offset":%d`, *d.epoch(c), c.Position())
	}
	return c.SendText(fmt.Appendf(nil, `{"id":1,"connect":{}}`+"\n"+`{"id":2,"subscribe":{"channel":%q%s}}`, c.Channel(), recovery))
}

// epoch returns the epoch of the connection's channel.
func (d *Centrifuge) epoch(c Connection) *string {
	for len(d.epochs) <= c.ChannelIndex() {
		d.epochs = append(d.epochs, "")
	}
	return &d.epochs[c.ChannelIndex()]
}

// Handle implements [Dialect].
func (d *Centrifuge) Handle(c Connection, body []byte) error {
	return d.handle(c, body, func(tail []byte) bool { return bytes.Equal(tail, centrifugeTail) })
}

// handle handles the objects in a frame. isMessage reports whether the rest of an object, after the
// offset, is that of a message in the server's usual notation.
func (d *Centrifuge) handle(c Connection, body []byte, isMessage func(tail []byte) bool) error {
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if data, offset, tail, ok := centrifugeMessage(line, c.Channel()); ok && isMessage(tail) {
			c.Deliver(data, offset)
		} else if err := d.reply(c, line); err != nil {
			return err
		}
	}
	return nil
}

// The pieces of a message as the server writes it.
var (
	centrifugeHead   = []byte(`{"push":{"channel":"`)
	centrifugeData   = []byte(`","pub":{"data":`)
	centrifugeOffset = []byte(`,"offset":`)
	centrifugeTail   = []byte(`}}}`)
)

// centrifugeMessage parses a message in the server's usual notation, up to the tail after its
// offset. ok is false for any other. A JSON decoder would cost more than the rest of the receiver.
func centrifugeMessage(line []byte, channel string) (data []byte, offset int64, tail []byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, centrifugeHead)
	if !ok || len(rest) < len(channel) || string(rest[:len(channel)]) != channel {
		return nil, 0, nil, false
	}
	if rest, ok = bytes.CutPrefix(rest[len(channel):], centrifugeData); !ok {
		return nil, 0, nil, false
	}
	end := bytes.LastIndex(rest, centrifugeOffset)
	if end < 0 {
		return nil, 0, nil, false
	}
	offset, tail, ok = parseNumber(rest[end:], centrifugeOffset)
	return rest[:end], offset, tail, ok
}

// reply handles an object that is not a message in the usual notation.
func (d *Centrifuge) reply(c Connection, line []byte) error {
	var r centrifugeReply
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("%.80q: %w", line, err)
	}
	switch {
	case r.Error != nil:
		return fmt.Errorf("the server answered with error %d: %s", r.Error.Code, r.Error.Message)
	case r.Connect != nil:
		return nil
	case r.Subscribe != nil:
		return d.subscribed(c, r.Subscribe)
	case r.Push != nil && r.Push.Pub != nil && r.Push.Channel == c.Channel():
		c.Deliver(r.Push.Pub.Data, r.Push.Pub.Offset)
		return nil
	case r.Push != nil && r.Push.Pub != nil:
		c.Unexpected(line)
		return nil
	case string(line) == "{}":
		return d.ping(c)
	}
	return fmt.Errorf("the server sent %.200s", line)
}

// ping answers a ping with an empty command.
func (d *Centrifuge) ping(c Connection) error {
	if d.pong == nil {
		var err error
		if d.pong, err = TextFrame([]byte("{}")); err != nil {
			return err
		}
	}
	return c.Send(d.pong)
}

// subscribed records the position and delivers the missed messages.
func (d *Centrifuge) subscribed(c Connection, s *centrifugeSubscribe) error {
	if c.Resuming() && !s.Recovered {
		return errors.New("the server has not kept what the client missed")
	}
	*d.epoch(c) = s.Epoch
	if !c.Resuming() {
		c.SetPosition(s.Offset)
	}
	for _, p := range s.Publications {
		c.Deliver(p.Data, p.Offset)
	}
	return c.Ready()
}
