package swarm

import (
	"bytes"
	"errors"
	"fmt"
)

// CentrifugeMap is the protocol of the centrifuge library with map subscriptions. Messages are
// changes of one entry. It does not resume. Use a CentrifugeMap for one Swarm only.
type CentrifugeMap struct {
	Centrifuge
	Key string // of the entry
}

// Subscribe asks for the state of the channel's map. If the map has at most 1,000 entries, the
// answer holds all of them, and the subscription is live.
func (d *CentrifugeMap) Subscribe(c Connection) error {
	if c.Resuming() {
		return errMapResume
	}
	return c.SendText(fmt.Appendf(nil, `{"id":1,"connect":{}}`+"\n"+`{"id":2,"subscribe":{"channel":%q,"type":1,"phase":2,"limit":1000}}`, c.Channel()))
}

var errMapResume = errors.New("a map subscription cannot resume")

// Handle implements [Dialect].
func (d *CentrifugeMap) Handle(c Connection, body []byte) error {
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if data, offset, ok := centrifugeChange(line, c.Channel(), d.Key); ok {
			c.Deliver(data, offset)
		} else if err := d.reply(c, line); err != nil {
			return err
		}
	}
	return nil
}

// centrifugeKey is between the offset of a change and the key of its entry.
var centrifugeKey = []byte(`,"key":"`)

// centrifugeChange parses a change of an entry in the server's usual notation. ok is false for any
// other.
func centrifugeChange(line []byte, channel, key string) (data []byte, offset int64, ok bool) {
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
	offset, tail, ok := parseNumber(rest[end:], centrifugeOffset)
	tail, isEntry := bytes.CutPrefix(tail, centrifugeKey)
	return rest[:end], offset, ok && isEntry && len(tail) > len(key) && string(tail[:len(key)]) == key && tail[len(key)] == '"'
}
