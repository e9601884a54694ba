package native

import (
	"bytes"
	"encoding/json"

	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

// DecodeRequest decodes one request. The error is a *wire.Error that says what is wrong and where.
// The Request shares no memory with raw.
func DecodeRequest(raw []byte) (wire.Request, error) {
	var req wire.Request
	if !scan(&req, raw) {
		if err := payload.CheckText(raw); err != nil {
			return wire.Request{}, err
		}
		var err error
		if req, err = unmarshal(raw); err != nil {
			return wire.Request{}, err
		}
	}
	if req.Type == "" {
		return req, wire.Errorf(wire.BadRequest, "type: missing")
	}
	if req.After != nil && *req.After < 0 {
		return req, wire.Errorf(wire.BadRequest, "after: %d is below zero", *req.After)
	}
	return req, nil
}

// unmarshal is a function of its own because encoding/json moves the Request to the heap.
func unmarshal(raw []byte) (req wire.Request, err error) {
	if err := json.Unmarshal(raw, &req); err != nil {
		return wire.Request{}, wire.JSONError(err)
	}
	return req, nil
}

// refAtStart returns the ref of a request of which only the first bytes are known, if it is among
// the members that are complete.
func refAtStart(start []byte) (ref wire.Ref) {
	d := json.NewDecoder(bytes.NewReader(start))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return wire.Ref{}
	}
	for {
		name, err := d.Token()
		if err != nil {
			return wire.Ref{}
		}
		if name == "ref" {
			if d.Decode(&ref) != nil {
				return wire.Ref{}
			}
			return ref
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return wire.Ref{}
		}
	}
}

// salvageRef returns the ref of a request that cannot be decoded, if the ref itself can. object
// reports whether the request is a JSON object at all.
func salvageRef(raw []byte) (ref wire.Ref, object bool) {
	var partial struct{ Ref wire.Ref }
	_ = json.Unmarshal(raw, &partial)
	return partial.Ref, bytes.HasPrefix(bytes.TrimSpace(raw), []byte{'{'}) && json.Valid(raw)
}
