package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Kind says what a hint is about.
type Kind uint8

const (
	Channel      Kind = iota + 1 // a message is in a channel
	Client                       // a message is in a client's queue
	Supersede                    // a client is bound to another server
	Presence                     // a server's roster of a channel has changed
	User                         // a client of a user has connected or disconnected
	Acknowledged                 // a client has acknowledged messages of its queue
	// ChannelEntry is Channel for a hint whose Data is a state.Entry. A server that does not know the
	// kind ignores the hint, instead of delivering the entry as the data of a message.
	ChannelEntry
	Here // clients show new values to the watchers of a channel
)

const (
	maxName   = 1 << 10  // bytes
	maxData   = 64 << 10 // bytes
	batchSize = 64 << 10 // a batch of this many bytes takes no more hints
)

// Hint tells a server that something has changed, in most cases that a queue has a new message.
type Hint struct {
	Kind Kind
	// Name is the name of the channel or the user, or the id of the client.
	Name string
	// ID is the id of the message, and Prev the id of the message before it in the queue. For
	// Supersede, ID is the generation of the client's binding to another server. For Presence, ID is
	// the version of the roster that Data names. For Acknowledged, ID is the last acknowledged id, and
	// Prev the generation of the client's binding.
	ID, Prev int64
	// Data is the message itself if it is small, else nil. For Here, it has the values, and ID and
	// Prev are 0. It must not change after Send.
	Data []byte
}

var errMalformed = errors.New("malformed batch")

// size returns about how many bytes a queued hint takes.
func (h *Hint) size() int { return 72 + len(h.Name) + len(h.Data) }

func (h *Hint) append(b []byte) []byte {
	b = append(b, byte(h.Kind))
	b = binary.AppendUvarint(b, uint64(len(h.Name)))
	b = append(b, h.Name...)
	b = binary.AppendVarint(b, h.ID)
	b = binary.AppendVarint(b, h.ID-h.Prev)
	b = binary.AppendUvarint(b, uint64(len(h.Data)))
	return append(b, h.Data...)
}

// ending is what follows the hints of a batch. The zero value is nothing. Only links with features
// have it.
type ending struct {
	goodbye bool // the sender addresses no more hints
}

// flagGoodbye is the only flag of an ending so far.
const flagGoodbye = 1

func (e ending) append(b []byte) []byte {
	if e.goodbye {
		b = append(b, 0, flagGoodbye)
	}
	return b
}

// decodeEnding decodes b, which follows kind 0.
func decodeEnding(b []byte) (e ending, ok bool) {
	ok = len(b) == 1 && b[0] == flagGoodbye
	return ending{goodbye: ok}, ok
}

// appendBatch appends a batch to b: number and the first n hints, as many as batchSize allows. The
// ending says something about all hints, so it is in the last batch of several.
func appendBatch(b []byte, number uint64, hints []Hint, end ending) (batch []byte, n int) {
	b = binary.AppendUvarint(b, number)
	for n < len(hints) && len(b) < batchSize {
		b = hints[n].append(b)
		n++
	}
	if n == len(hints) {
		b = end.append(b)
	}
	return b, n
}

// decodeBatch decodes b and appends its hints to hints. They share no memory with b. Without
// features, b has no ending.
func decodeBatch(b []byte, hints []Hint, f features) (number uint64, _ []Hint, end ending, err error) {
	number, b, ok := uvarint(b)
	if !ok {
		return 0, hints, end, errMalformed
	}
	for len(b) > 0 {
		if b[0] == 0 && f != 0 {
			if end, ok = decodeEnding(b[1:]); !ok {
				return 0, hints, end, errMalformed
			}
			break
		}
		var h Hint
		if h, b, ok = decodeHint(b); !ok {
			return 0, hints, end, errMalformed
		}
		hints = append(hints, h)
	}
	return number, hints, end, nil
}

func decodeHint(b []byte) (h Hint, rest []byte, ok bool) {
	if h.Kind, b = Kind(b[0]), b[1:]; h.Kind == 0 {
		return h, b, false
	}
	name, b, ok := lengthPrefixed(b, maxName)
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
	h.Prev = h.ID - step // wraps around if the sender's subtraction did
	data, b, ok := lengthPrefixed(b, maxData)
	if len(data) > 0 {
		h.Data = bytes.Clone(data)
	}
	return h, b, ok
}

// lengthPrefixed reads a length of at most limit, and that many bytes.
func lengthPrefixed(b []byte, limit uint64) (chunk, rest []byte, ok bool) {
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
