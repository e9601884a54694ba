package api

import (
	"errors"
	"io"
	"net/http"
	"os"

	"switchboard/internal/payload"
	"switchboard/internal/strict"
	"switchboard/internal/wire"
)

// decodeBody decodes the body into v. See package strict for what it refuses.
func decodeBody(r io.Reader, v any) error {
	text, err := io.ReadAll(r)
	return body{text, err}.decode(v)
}

// decode decodes the body into v.
func (b body) decode(v any) error {
	if b.err != nil {
		return readError(b.err)
	}
	return strict.Decode(b.text, v)
}

// readError returns the error for a body that could not be read.
func readError(err error) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return wire.Errorf(wire.TooLarge, "the body is larger than %d bytes", large.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return wire.Errorf(wire.BadRequest, "the body did not come in time")
	}
	return wire.Errorf(wire.BadRequest, "the body ends early")
}

// readPush reads the body of a push.
func readPush(b body) (pushRequest, error) {
	var scanned pushRequest
	s := payload.NewScanner(b.whole())
	if scanPush(&s, &scanned) && s.End() {
		return scanned, nil
	}
	var decoded pushRequest // escapes to the heap
	err := b.decode(&decoded)
	return decoded, err
}

// decodePush reads one push of a batch.
func decodePush(raw []byte) (req pushRequest, err error) {
	err = strict.Decode(raw, &req)
	return req, err
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

// decodeOptionalBody is like decodeBody, but the body may be empty.
func decodeOptionalBody(r *http.Request, v any) error {
	text, err := io.ReadAll(r.Body)
	if err == nil && len(text) == 0 {
		return nil
	}
	return body{text, err}.decode(v)
}
