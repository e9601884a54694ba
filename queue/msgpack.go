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
