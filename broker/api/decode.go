package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"

	"switchboard/internal/wire"
)

// read decodes the body into v, strictly.
func read(body io.Reader, v any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bodyError(d, err)
	}
	if d.More() {
		return wire.Errorf(wire.BadRequest, "byte %d: something follows the JSON object", d.InputOffset()+1)
	}
	return nil
}

// decodePush reads one push of a batch, strictly.
func decodePush(raw []byte) (req pushRequest, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&req); err != nil {
		return req, bodyError(d, err)
	}
	return req, nil
}

// bodyError says what is wrong with a body, and where.
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
		return wire.Errorf(wire.BadRequest, "not JSON: it ends early, behind byte %d", d.InputOffset()+rest)
	}
	return wire.JSONError(err)
}

// inMessage is err with the number of the message of a batch that it is about.
func inMessage(i int, err error) error {
	own, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	return wire.Errorf(own.Code, "messages[%d]: %s", i, own.Message)
}

// tally counts the targets of a call while it is read, so that no more is read than may be pushed.
type tally struct{ n, most int }

// add counts those of message i of a batch.
func (t *tally) add(i int, m *batched) error {
	if m.plain() {
		t.n++
	} else if m.long != nil {
		t.n += m.long.count()
	}
	if t.n > t.most {
		return inMessage(i, wire.Errorf(wire.TooLarge,
			"up to here the call has %d targets, at most %d are allowed (limits.targets)", t.n, t.most))
	}
	return nil
}

// count is how many targets a push names, right or wrong.
func (r *pushRequest) count() int {
	return max(1, len(r.Channels)+len(r.Users)+len(r.Clients))
}
