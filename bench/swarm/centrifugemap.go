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
	return d.handle(c, body, func(tail []byte) bool { return isEntry(tail, d.Key) })
}

// centrifugeKey is between the offset of a change and the key of its entry.
var centrifugeKey = []byte(`,"key":"`)

// isEntry reports whether the tail of a message is that of a change of the entry with a key.
func isEntry(tail []byte, key string) bool {
	rest, found := bytes.CutPrefix(tail, centrifugeKey)
	return found && len(rest) > len(key) && string(rest[:len(key)]) == key && rest[len(key)] == '"'
}
