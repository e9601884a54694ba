package api

import (
	"switchboard/broker/fields"
	"switchboard/broker/namespace"
	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// changeRequest is the part of a push that changes fields. The lease is pushRequest.TTL.
type changeRequest struct {
	Set   wire.Values `json:"set"`
	Del   nameList    `json:"del"`
	Add   wire.Values `json:"add"`
	Touch nameList    `json:"touch"`
	If    wire.Values `json:"if"`
	Of    parentNames `json:"of"`
	Own   *bool       `json:"own"` // refused: only a client with a connection owns fields
}

// parentNames are the parents of fields. Decoding refuses more than maxNames.
type parentNames map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (p *parentNames) UnmarshalJSON(text []byte) error {
	return decodeNames(text, (*map[string]string)(p))
}

// firstMember returns the name of the first of these members that is given, or "".
func (c *changeRequest) firstMember() string {
	switch {
	case len(c.Set) > 0:
		return "set"
	case len(c.Del) > 0:
		return "del"
	case len(c.Add) > 0:
		return "add"
	case len(c.Touch) > 0:
		return "touch"
	case len(c.If) > 0:
		return "if"
	case len(c.Of) > 0:
		return "of"
	case c.Own != nil:
		return "own"
	}
	return ""
}

// checkCounts returns an error if there are more than most operations, conditions or parents. Zero
// means no limit.
func (c *changeRequest) checkCounts(most int) error {
	n := len(c.Set) + len(c.Del) + len(c.Add) + len(c.Touch)
	switch {
	case most == 0:
		return nil
	case n > most:
		return wire.Errorf(wire.TooLarge, "%d fields are changed, at most %d are allowed", n, most)
	case len(c.If) > most:
		return wire.Errorf(wire.TooLarge, "if: %d conditions, at most %d are allowed", len(c.If), most)
	case len(c.Of) > most:
		return wire.Errorf(wire.TooLarge, "of: %d fields, at most %d are allowed", len(c.Of), most)
	}
	return nil
}

// change returns the change of a push to channels, or nil if it changes no fields.
func (a api) change(req *pushRequest, kind string) (*wire.Change, error) {
	member := req.firstMember()
	switch {
	case member == "":
		return nil, nil
	case kind != "channel":
		return nil, wire.Errorf(wire.BadRequest, "%s: only a push to a channel changes fields", member)
	case req.Own != nil:
		return nil, wire.Errorf(wire.BadRequest, "own: only a client that is connected owns fields, not the backend")
	case a.States == nil:
		return nil, errNoStates
	}
	return &wire.Change{
		Set: req.Set, Del: req.Del, Add: req.Add, Touch: req.Touch, If: req.If, Of: req.Of, TTL: req.TTL,
	}, nil
}

var errNoStates = wire.Errorf(wire.BadRequest, "this store holds no states of channels")

// backend is the writer and reader of all calls.
var backend = fields.Writer{Subject: namespace.Subject{Backend: true}}

// backendFilter shows the backend everything.
var backendFilter = state.Filter{State: true, By: true, Hidden: true}

// update returns the update of a channel's state that makes the change.
func (a api) update(channel string, change *wire.Change, data []byte) (*state.Update, error) {
	limits := a.Fields
	limits.Message = a.MaxMessage
	return fields.Build(a.Namespaces(), &backend, channel, change, data, limits)
}

// optionalData returns the compact data of a push. It may only be missing if the push changes
// fields.
func (a api) optionalData(req *pushRequest, change *wire.Change) ([]byte, error) {
	if change != nil && len(req.Data) == 0 {
		return nil, nil
	}
	return payload.Compact(req.Data, a.MaxMessage)
}
