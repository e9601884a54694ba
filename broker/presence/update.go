package presence

import (
	"encoding/json"
	"time"

	"switchboard/broker/peer"
	"switchboard/registry"
)

// maxInline is the largest change that travels in a hint; a larger one is read from the store.
const maxInline = 8 << 10

// update is a change of one server's roster, from version prev to version.
type rosterUpdate struct {
	server        string
	prev, version int64
	complete      bool // what has changed; else it must be read
	change        registry.PresenceChange
}

// body is an update on its way.
type hintBody struct {
	Server string       `json:"s"`
	Join   []hintMember `json:"j,omitempty"`
	Leave  []hintMember `json:"l,omitempty"`
}

type hintMember struct {
	Client     string          `json:"c"`
	Since      int64           `json:"t,omitempty"` // ms since 1970
	Generation int64           `json:"g"`
	User       string          `json:"u,omitempty"`
	Info       json.RawMessage `json:"i,omitempty"`
}

// encode makes the hint that tells of u.
func (u rosterUpdate) encode(channel string) (peer.Hint, error) {
	b := hintBody{Server: u.server}
	for _, m := range u.change.Join {
		b.Join = append(b.Join, hintMember{m.Client, m.Since.UnixMilli(), m.Generation, m.User, m.Info})
	}
	for _, m := range u.change.Leave {
		b.Leave = append(b.Leave, hintMember{Client: m.Client, Generation: m.Generation})
	}
	data, err := json.Marshal(b)
	if !u.complete || len(data) > maxInline {
		data, err = json.Marshal(hintBody{Server: u.server})
	}
	return peer.Hint{Kind: peer.Presence, Name: channel, ID: u.version, Prev: u.prev, Data: data}, err
}

// decode reads what encode made.
func decode(h peer.Hint) (rosterUpdate, bool) {
	var b hintBody
	if json.Unmarshal(h.Data, &b) != nil || b.Server == "" {
		return rosterUpdate{}, false
	}
	u := rosterUpdate{server: b.Server, prev: h.Prev, version: h.ID, complete: len(b.Join)+len(b.Leave) > 0}
	for _, m := range b.Join {
		u.change.Join = append(u.change.Join, registry.Member{
			Client: m.Client, User: m.User, Info: m.Info, Since: time.UnixMilli(m.Since).UTC(), Generation: m.Generation,
		})
	}
	for _, m := range b.Leave {
		u.change.Leave = append(u.change.Leave, registry.Member{Client: m.Client, Generation: m.Generation})
	}
	return u, true
}
