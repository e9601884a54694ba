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

// salvageRef returns the ref of a request that cannot be decoded, if the ref itself can. object
// reports whether the request is a JSON object at all.
func salvageRef(raw []byte) (ref wire.Ref, object bool) {
	var partial struct{ Ref wire.Ref }
	_ = json.Unmarshal(raw, &partial)
	return partial.Ref, bytes.HasPrefix(bytes.TrimSpace(raw), []byte{'{'}) && json.Valid(raw)
}
