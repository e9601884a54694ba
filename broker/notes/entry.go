package notes

import (
	"encoding/binary"
	"errors"

	"switchboard/internal/note"
)

// maxNumber is the largest number of a note. Scores above it are those of the floor.
const maxNumber = 1<<51 - 1

// Entry is one note: the names that a pipeline changes.
type Entry struct {
	Number  uint64
	Settled uint64 // Writer.Settled before the pipeline was sent
	Names   []note.Name
}

var errMalformed = errors.New("malformed note")

// Append appends the encoded entry to b:
//
//	entry = number settled (kind name)*
//	number, settled: uvarint; kind: a byte; name: uvarint length and bytes
func (e *Entry) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, e.Number)
	b = binary.AppendUvarint(b, e.Settled)
	for i := range e.Names {
		n := &e.Names[i]
		b = append(b, byte(n.Kind))
		b = binary.AppendUvarint(b, uint64(len(n.Name)))
		b = append(b, n.Name...)
	}
	return b
}

// size returns about how many bytes the encoded entry has, not less.
func (e *Entry) size() int {
	n := 2 * binary.MaxVarintLen64
	for i := range e.Names {
		n += 3 + len(e.Names[i].Name)
	}
	return n
}

// Decode decodes what Append has encoded.
func Decode(text string) (e Entry, err error) {
	b := []byte(text)
	var ok bool
	if e.Number, b, ok = uvarint(b); !ok {
		return Entry{}, errMalformed
	}
	if e.Settled, b, ok = uvarint(b); !ok {
		return Entry{}, errMalformed
	}
	for len(b) > 0 {
		kind := note.Kind(b[0])
		n, rest, ok := uvarint(b[1:])
		if !ok || n > uint64(len(rest)) {
			return Entry{}, errMalformed
		}
		e.Names = append(e.Names, note.Name{Kind: kind, Name: string(rest[:n])})
		b = rest[n:]
	}
	return e, nil
}

func uvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	return v, b[max(n, 0):], n > 0
}
