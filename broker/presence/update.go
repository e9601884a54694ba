package presence

import (
	"encoding/json"
	"time"

	"switchboard/broker/peer"
	"switchboard/registry"
)

// maxInline is the most bytes of a change in a hint. A larger change is read from the store.
const maxInline = 8 << 10

// rosterUpdate is a change of one server's roster, from version prev to version.
type rosterUpdate struct {
	server        string
	prev, version int64
	inline        bool // change is set; otherwise the roster must be read
	change        registry.PresenceChange
}

// hintBody is the JSON form of a rosterUpdate.
type hintBody struct {
	Server string       `json:"s"`
	Join   []hintMember `json:"j,omitempty"`
	Leave  []hintMember `json:"l,omitempty"`
}

// hintMember is the JSON form of a member.
type hintMember struct {
	Client     string          `json:"c"`
	Since      int64           `json:"t,omitempty"` // ms since 1970
	Generation int64           `json:"g"`
	User       string          `json:"u,omitempty"`
	Info       json.RawMessage `json:"i,omitempty"`
}

// encode returns the hint for u.
func (u rosterUpdate) encode(channel string) (peer.Hint, error) {
	b := hintBody{Server: u.server}
	for _, m := range u.change.Join {
		b.Join = append(b.Join, hintMember{m.Client, m.Since.UnixMilli(), m.Generation, m.User, m.Info})
	}
	for _, m := range u.change.Leave {
		b.Leave = append(b.Leave, hintMember{Client: m.Client, Generation: m.Generation})
	}
	data, err := json.Marshal(b)
	if !u.inline || len(data) > maxInline {
		data, err = json.Marshal(hintBody{Server: u.server})
	}
	return peer.Hint{Kind: peer.Presence, Name: channel, ID: u.version, Prev: u.prev, Data: data}, err
}

// decode reads the hint that encode returned.
func decode(h peer.Hint) (rosterUpdate, bool) {
	var b hintBody
	if json.Unmarshal(h.Data, &b) != nil || b.Server == "" {
		return rosterUpdate{}, false
	}
	u := rosterUpdate{server: b.Server, prev: h.Prev, version: h.ID, inline: len(b.Join)+len(b.Leave) > 0}
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
