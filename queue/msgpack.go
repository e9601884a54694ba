package queue

import (
	"encoding/binary"
	"math"
)

// packer encodes MessagePack, which a script decodes in one call. Strings are not escaped.
type packer []byte

func (p *packer) array(n int) {
	switch {
	case n < 16:
		*p = append(*p, 0x90|byte(n))
	case n <= math.MaxUint16:
		*p = binary.BigEndian.AppendUint16(append(*p, 0xdc), uint16(n))
	default:
		*p = binary.BigEndian.AppendUint32(append(*p, 0xdd), uint32(n))
	}
}

func (p *packer) integer(n int64) {
	if n >= 0 && n < 128 {
		*p = append(*p, byte(n))
		return
	}
	*p = binary.BigEndian.AppendUint64(append(*p, 0xd3), uint64(n))
}

func (p *packer) flag(b bool) {
	if b {
		p.integer(1)
	} else {
		p.integer(0)
	}
}

// packText encodes a string of at most 4 GiB.
func packText[T string | []byte](p *packer, s T) {
	switch n := len(s); {
	case n < 32:
		*p = append(*p, 0xa0|byte(n))
	case n <= math.MaxUint16:
		*p = binary.BigEndian.AppendUint16(append(*p, 0xda), uint16(n))
	default:
		*p = binary.BigEndian.AppendUint32(append(*p, 0xdb), uint32(n))
	}
	*p = append(*p, s...)
}

// tuple is an array of at most 15 elements, or of more if the first byte of the array is not used.
// Zero values are nil, and are left out at the end.
type tuple struct {
	*packer
	header   int // where the array begins
	n        int // elements so far
	kept     int // number of the last one that is not nil
	keptSize int // size of the packer after it
}

// tuple begins an array. The caller must call finish.
func (p *packer) tuple() tuple {
	t := tuple{packer: p, header: len(*p), keptSize: len(*p) + 1}
	p.array(0)
	return t
}

// added counts an element that was appended to the packer.
func (t *tuple) added() {
	t.n++
	t.kept, t.keptSize = t.n, len(*t.packer)
}

// skip appends nil.
func (t *tuple) skip() {
	*t.packer = append(*t.packer, 0xc0)
	t.n++
}

// addText appends a string.
func addText[T string | []byte](t *tuple, s T) {
	if len(s) == 0 {
		t.skip()
		return
	}
	packText(t.packer, s)
	t.added()
}

func (t *tuple) integer(n int64) {
	if n == 0 {
		t.skip()
		return
	}
	t.packer.integer(n)
	t.added()
}

func (t *tuple) flag(b bool) {
	if !b {
		t.skip()
		return
	}
	*t.packer = append(*t.packer, 0xc3)
	t.added()
}

// finish ends the array.
func (t *tuple) finish() {
	*t.packer = (*t.packer)[:t.keptSize]
	(*t.packer)[t.header] = 0x90 | byte(t.kept)
}
