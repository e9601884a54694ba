package api

import (
	"switchboard/broker/fields"
	"switchboard/broker/namespace"
	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// parentNames are the parents of fields. Decoding refuses more than maxNames.
type parentNames map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (p *parentNames) UnmarshalJSON(text []byte) error {
	return decodeNames(text, (*map[string]string)(p))
}

// changeMember returns the name of the first member that is given of those that change fields. It
// returns "" if there is none.
func (r *pushRequest) changeMember() string {
	switch {
	case len(r.Set) > 0:
		return "set"
	case len(r.Del) > 0:
		return "del"
	case len(r.Add) > 0:
		return "add"
	case len(r.Touch) > 0:
		return "touch"
	case len(r.If) > 0:
		return "if"
	case len(r.Of) > 0:
		return "of"
	case r.Own != nil:
		return "own"
	}
	return ""
}

// checkCounts returns an error if there are more than most operations, conditions or parents. Zero
// means no limit.
func (r *pushRequest) checkCounts(most int) error {
	n := len(r.Set) + len(r.Del) + len(r.Add) + len(r.Touch)
	switch {
	case most == 0:
		return nil
	case n > most:
		return wire.Errorf(wire.TooLarge, "%d fields are changed, at most %d are allowed", n, most)
	case len(r.If) > most:
		return wire.Errorf(wire.TooLarge, "if: %d conditions, at most %d are allowed", len(r.If), most)
	case len(r.Of) > most:
		return wire.Errorf(wire.TooLarge, "of: %d fields, at most %d are allowed", len(r.Of), most)
	}
	return nil
}

// forgetChange releases the memory of a change that is refused.
func (r *pushRequest) forgetChange() {
	r.Set, r.Del, r.Add, r.Touch, r.If, r.Of = nil, nil, nil, nil, nil, nil
}

// change returns the change of a push to channels, or nil if it changes no fields.
func (a api) change(req *pushRequest, kind string) (*wire.Change, error) {
	member := req.changeMember()
	switch {
	case member == "":
		return nil, nil
	case kind != "channel":
		return nil, wire.Errorf(wire.BadRequest, "%s: only a push to a channel changes fields", member)
	case req.Own != nil && *req.Own:
		return nil, wire.Errorf(wire.BadRequest, "own: only a client that is connected owns fields, not the backend")
	}
	return &wire.Change{
		Set: req.Set, Del: req.Del, Add: req.Add, Touch: req.Touch, If: req.If, Of: req.Of, TTL: req.TTL, Own: req.Own,
	}, nil
}

// backend is the writer and reader of all calls.
var backend = fields.Writer{Subject: namespace.Subject{Backend: true}}

// backendFilter shows the backend everything.
var backendFilter = state.Filter{State: true, By: true, Hidden: true}

// update returns the update of a channel's state that makes the change.
func (a api) update(channel string, change *wire.Change, data []byte) (*state.Update, error) {
	return fields.Build(a.Namespaces(), &backend, channel, change, data, a.Fields, a.MaxMessage)
}

// optionalData returns the compact data of a push. It may only be missing if the push changes
// fields.
func (a api) optionalData(req *pushRequest, change *wire.Change) ([]byte, error) {
	switch {
	case len(req.Data) > 0:
	case change != nil:
		return nil, nil
	default:
		return nil, wire.Errorf(wire.BadRequest, "data: missing, and the push changes no fields (set, del, add, touch)")
	}
	return payload.Compact(req.Data, a.MaxMessage)
}
