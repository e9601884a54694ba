package swarm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Centrifuge is the JSON protocol of the centrifuge library over WebSocket: objects, several of them in one
// frame on lines of their own. It is for one Swarm.
type Centrifuge struct {
	Addr string

	epochs []string // by channel: of its stream
	pong   []byte
}

// centrifugeReply is what the server sends; {} is a ping.
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

// Cut implements [Dialect].
func (*Centrifuge) Cut(buf []byte) (Unit, int, error) { return CutFrame(buf) }

// Upgrade implements [Dialect].
func (d *Centrifuge) Upgrade(Link) []byte { return Upgrade(d.Addr, "/connection/websocket") }

// Greet sends connect and subscribe in one frame.
func (d *Centrifuge) Greet(l Link) error {
	recovery := ""
	if l.Resuming() {
		recovery = fmt.Sprintf(`,"recover":true,"epoch":%q,"offset":%d`, *d.epoch(l), l.Position())
	}
	return l.SendText(fmt.Appendf(nil, `{"id":1,"connect":{}}`+"\n"+`{"id":2,"subscribe":{"channel":%q%s}}`, l.Channel(), recovery))
}

// epoch is that of the connection's channel.
func (d *Centrifuge) epoch(l Link) *string {
	for len(d.epochs) <= l.ChannelIndex() {
		d.epochs = append(d.epochs, "")
	}
	return &d.epochs[l.ChannelIndex()]
}

// Read implements [Dialect].
func (d *Centrifuge) Read(l Link, body []byte) error {
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if data, offset, ok := centrifugeMessage(line, l.Channel()); ok {
			l.Message(data, offset)
		} else if err := d.reply(l, line); err != nil {
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

// centrifugeMessage reads a message in the server's usual notation; any other is not ok. A decoder would
// cost more than all the rest of the receiver.
func centrifugeMessage(line []byte, channel string) (data []byte, offset int64, ok bool) {
	rest, ok := bytes.CutPrefix(line, centrifugeHead)
	if !ok || len(rest) < len(channel) || string(rest[:len(channel)]) != channel {
		return nil, 0, false
	}
	if rest, ok = bytes.CutPrefix(rest[len(channel):], centrifugeData); !ok {
		return nil, 0, false
	}
	end := bytes.LastIndex(rest, centrifugeOffset)
	if end < 0 {
		return nil, 0, false
	}
	offset, tail, ok := number(rest[end:], centrifugeOffset)
	return rest[:end], offset, ok && bytes.Equal(tail, centrifugeTail)
}

// reply acts on what is not a message in the usual notation.
func (d *Centrifuge) reply(l Link, line []byte) error {
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
		return d.subscribed(l, r.Subscribe)
	case r.Push != nil && r.Push.Pub != nil && r.Push.Channel == l.Channel():
		l.Message(r.Push.Pub.Data, r.Push.Pub.Offset)
		return nil
	case r.Push != nil && r.Push.Pub != nil:
		l.Stray(line)
		return nil
	case string(line) == "{}":
		return d.ping(l)
	}
	return fmt.Errorf("the server sent %.200s", line)
}

// ping answers with an empty command.
func (d *Centrifuge) ping(l Link) error {
	if d.pong == nil {
		var err error
		if d.pong, err = TextFrame([]byte("{}")); err != nil {
			return err
		}
	}
	return l.Send(d.pong)
}

// subscribed notes where the client stands, and takes what it missed.
func (d *Centrifuge) subscribed(l Link, s *centrifugeSubscribe) error {
	if l.Resuming() && !s.Recovered {
		return errors.New("the server has not kept what the client missed")
	}
	*d.epoch(l) = s.Epoch
	if !l.Resuming() {
		l.SetPosition(s.Offset)
	}
	for _, p := range s.Publications {
		l.Message(p.Data, p.Offset)
	}
	return l.Ready()
}

// Ping implements [Dialect]: only the server pings.
func (*Centrifuge) Ping() []byte { return nil }
