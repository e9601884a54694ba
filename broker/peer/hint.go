package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Kind says what a hint is about.
type Kind uint8

const (
	Channel   Kind = iota + 1 // a message is in a channel
	Client                    // a message is in a client's queue
	Supersede                 // a client is bound elsewhere
	Presence                  // a server's roster of a channel has changed
	User                      // a client of a user has come or gone
)

const (
	maxName   = 1 << 10
	maxData   = 64 << 10
	batchSize = 64 << 10 // a batch that has reached it is written
	maxBatch  = 1 << 20
)

// Hint says that a queue has something new.
type Hint struct {
	Kind Kind
	// Name is the channel's or the client's.
	Name string
	// ID of the message, which follows Prev in the queue of Name. For Supersede it is the
	// generation that the client has elsewhere, for Presence a version of the roster, which Data names.
	ID, Prev int64
	// Data is the message itself when it is small, else nil. It must not change after Send.
	Data []byte
}

var errMalformed = errors.New("malformed batch")

// cost is about how many bytes a queued hint holds.
func (h *Hint) cost() int { return 72 + len(h.Name) + len(h.Data) }

func (h *Hint) append(b []byte) []byte {
	b = append(b, byte(h.Kind))
	b = binary.AppendUvarint(b, uint64(len(h.Name)))
	b = append(b, h.Name...)
	b = binary.AppendVarint(b, h.ID)
	b = binary.AppendVarint(b, h.ID-h.Prev)
	b = binary.AppendUvarint(b, uint64(len(h.Data)))
	return append(b, h.Data...)
}

// appendBatch encodes the first n hints, as many as make a batch, behind number.
func appendBatch(b []byte, number uint64, hints []Hint) (batch []byte, n int) {
	b = binary.AppendUvarint(b, number)
	for n < len(hints) && len(b) < batchSize {
		b = hints[n].append(b)
		n++
	}
	return b, n
}

// decodeBatch appends the batch's hints to hints. They share no memory with b.
func decodeBatch(b []byte, hints []Hint) (number uint64, _ []Hint, err error) {
	number, b, ok := uvarint(b)
	if !ok {
		return 0, hints, errMalformed
	}
	for len(b) > 0 {
		var h Hint
		if h, b, ok = decodeHint(b); !ok {
			return 0, hints, errMalformed
		}
		hints = append(hints, h)
	}
	return number, hints, nil
}

func decodeHint(b []byte) (h Hint, rest []byte, ok bool) {
	if h.Kind, b = Kind(b[0]), b[1:]; h.Kind == 0 {
		return h, b, false
	}
	name, b, ok := chunk(b, maxName)
	if !ok {
		return h, b, false
	}
	h.Name = string(name)
	if h.ID, b, ok = varint(b); !ok {
		return h, b, false
	}
	var step int64
	if step, b, ok = varint(b); !ok {
		return h, b, false
	}
	h.Prev = h.ID - step // wraps where the sender's difference did
	data, b, ok := chunk(b, maxData)
	if len(data) > 0 {
		h.Data = bytes.Clone(data)
	}
	return h, b, ok
}

// chunk is a length of at most limit, and that many bytes.
func chunk(b []byte, limit uint64) (chunk, rest []byte, ok bool) {
	n, b, ok := uvarint(b)
	if !ok || n > limit || n > uint64(len(b)) {
		return nil, b, false
	}
	return b[:n], b[n:], true
}

func uvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	return v, b[max(n, 0):], n > 0
}

func varint(b []byte) (v int64, rest []byte, ok bool) {
	v, n := binary.Varint(b)
	return v, b[max(n, 0):], n > 0
}
