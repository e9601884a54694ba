package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"

	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

// decodeBody decodes the body into v. Unknown fields and text after the object are errors.
func decodeBody(body io.Reader, v any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bodyError(d, err)
	}
	if d.More() || bracketFollows(d) {
		return wire.Errorf(wire.BadRequest, "byte %d: text follows the JSON object", d.InputOffset()+1)
	}
	return nil
}

// bracketFollows reports whether the next byte is } or ], for which d.More returns false. d.More
// must have skipped the white space before it.
func bracketFollows(d *json.Decoder) bool {
	var next [1]byte
	n, _ := d.Buffered().Read(next[:])
	return n == 1 && (next[0] == '}' || next[0] == ']')
}

// readPush reads the body of a push.
func readPush(b body) (pushRequest, error) {
	var scanned pushRequest
	s := payload.NewScanner(b.whole())
	if scanPush(&s, &scanned) && s.End() {
		return scanned, nil
	}
	var decoded pushRequest // escapes to the heap
	err := decodeBody(b.reader(), &decoded)
	return decoded, err
}

// decodePush reads one push of a batch. Unknown fields are errors.
func decodePush(raw []byte) (req pushRequest, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&req); err != nil {
		return req, bodyError(d, err)
	}
	return req, nil
}

// bodyError returns the error for the backend: what is wrong with the body, and at which byte.
func bodyError(d *json.Decoder, err error) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return wire.Errorf(wire.TooLarge, "the body is larger than %d bytes", large.Limit)
	}
	switch rest, _ := io.Copy(io.Discard, d.Buffered()); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return wire.Errorf(wire.BadRequest, "the body did not come in time")
	case errors.Is(err, io.EOF):
		return wire.Errorf(wire.BadRequest, "the body is empty, a JSON object is expected")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return wire.Errorf(wire.BadRequest, "not JSON: it ends early, after byte %d", d.InputOffset()+rest)
	}
	return wire.JSONError(err)
}

// inMessage adds the index of a batch's message to err.
func inMessage(i int, err error) error {
	wireErr, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	return wire.Errorf(wireErr.Code, "messages[%d]: %s", i, wireErr.Message)
}

// callCounter bounds the memory for the pushes of a call while the body is read.
type callCounter struct {
	n          int // targets so far
	targets    int // most targets of the call; reading ends at this limit
	operations int // most fields that one push changes; 0 for no limit
}

// add counts message i of a batch.
func (c *callCounter) add(i int, m *batchItem) error {
	if m.isSimple() {
		c.n++
	} else if m.full != nil {
		c.n += m.full.count()
		if m.err == nil {
			m.err = m.full.checkCounts(c.operations)
		}
		if m.err != nil {
			m.full.forgetChange()
		}
	}
	if c.n > c.targets {
		return inMessage(i, wire.Errorf(wire.TooLarge,
			"up to here the call has %d targets, at most %d are allowed (limits.targets)", c.n, c.targets))
	}
	return nil
}

// count returns how many targets a push names, valid or not.
func (r *pushRequest) count() int {
	return max(1, len(r.Channels)+len(r.Users)+len(r.Clients))
}
