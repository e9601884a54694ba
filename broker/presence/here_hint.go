package presence

import (
	"bytes"
	"encoding/binary"

	"switchboard/broker/peer"
)

// maxHereBody is the length in bytes at which a hint takes no more values.
const maxHereBody = 32 << 10

// sentValue is a value in a hint:
//
//	value = length client generation number length data
//
// Lengths, generation and number are uvarints. A value without data has ended.
type sentValue struct {
	client, data       []byte
	generation, number int64
}

// encodeHere returns the data of hints with the values.
func encodeHere(values []*hereValue) (bodies [][]byte) {
	for len(values) > 0 {
		n, size := 0, 0
		for n < len(values) && size < maxHereBody {
			size += len(values[n].client) + len(values[n].data) + 4*binary.MaxVarintLen64
			n++
		}
		body := make([]byte, 0, size)
		for _, v := range values[:n] {
			body = binary.AppendUvarint(body, uint64(len(v.client)))
			body = append(body, v.client...)
			body = binary.AppendUvarint(body, uint64(v.generation))
			body = binary.AppendUvarint(body, uint64(v.number))
			body = binary.AppendUvarint(body, uint64(len(v.data)))
			body = append(body, v.data...)
		}
		bodies, values = append(bodies, body), values[n:]
	}
	return bodies
}

// decodeHere decodes the first value of a hint. It shares the memory of body.
func decodeHere(body []byte) (v sentValue, rest []byte, ok bool) {
	if v.client, body, ok = cutBytes(body); !ok || len(v.client) == 0 {
		return v, nil, false
	}
	generation, n := binary.Uvarint(body)
	number, k := binary.Uvarint(body[max(n, 0):])
	if n <= 0 || k <= 0 {
		return v, nil, false
	}
	v.generation, v.number = int64(generation), int64(number)
	v.data, rest, ok = cutBytes(body[n+k:])
	return v, rest, ok
}

// cutBytes reads a length and that many bytes.
func cutBytes(b []byte) (first, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	end := n + int(size)
	return b[n:end], b[end:], true
}

// receiveHere applies a hint with values of another server.
func (p *Presence) receiveHere(hint peer.Hint) {
	h, v := p.lockHereAndView(hint.Name, true)
	defer unlockHere(h, v)
	post := false
	for body := hint.Data; len(body) > 0; {
		sent, rest, ok := decodeHere(body)
		if !ok {
			break
		}
		post = h.receiveLocked(v, sent) || post
		body = rest
	}
	if post {
		v.postHereLocked()
	}
}

// receiveLocked applies a value of another server. It reports whether the watchers have something
// to receive.
func (h *hereChannel) receiveLocked(v *View, sent sentValue) bool {
	value := h.values[string(sent.client)]
	switch {
	case value == nil && (len(sent.data) == 0 || len(h.values) >= h.maxValues()):
		return false
	case value == nil:
		value = &hereValue{client: string(sent.client)}
		h.values[value.client] = value
	case value.generation == sent.generation && value.number == sent.number:
		value.refreshed = h.p.here.now()
		if value.data != nil || len(sent.data) == 0 {
			return false
		} // otherwise it was not refreshed for hereTTL, and comes back now
	case !value.olderThan(sent.generation, sent.number):
		return false
	}
	value.generation, value.number, value.refreshed, value.local = sent.generation, sent.number, h.p.here.now(), false
	if value.data = nil; len(sent.data) > 0 {
		value.data = bytes.Clone(sent.data)
	}
	return h.showLocked(v, value, true)
}
