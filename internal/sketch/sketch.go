// Package sketch counts the distinct names of several servers from a short summary of each.
//
// A summary of up to [MaxExact] names has a hash of each, and is exact. One of more names is a
// HyperLogLog of 2^14 registers (Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog: the analysis of a
// near-optimal cardinality estimation algorithm", 2007), with the estimator of Ertl ("New
// cardinality estimation algorithms for HyperLogLog sketches", 2017, algorithm 6), which needs no
// table of corrections. Its standard error is [StandardError]. Either has 16 KiB at most.
package sketch

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

const (
	// MaxExact is the most names of an exact summary.
	MaxExact = 2048
	// StandardError is that of an estimate, relative to the number: 1.04/√m for m registers.
	StandardError = 0.0081

	indexBits = 14
	registers = 1 << indexBits
	rankBits  = 64 - indexBits
)

// The first byte of an encoded Sketch.
const (
	kindHashes    = 'h' // followed by 8 bytes for each name
	kindRegisters = 'r' // followed by one byte for each register
)

// ErrMalformed is returned for data that no Sketch has encoded.
var ErrMalformed = errors.New("sketch: malformed")

// Sketch summarizes a set of names. The zero value is the empty set.
type Sketch struct {
	hashes map[uint64]struct{}
	ranks  []byte // by register; nil for an exact Sketch, whose hashes are used
}

// Add adds a name. A Sketch of more than MaxExact names is no longer exact.
func (s *Sketch) Add(name string) {
	s.addHash(xxhash.Sum64String(name)) // the same on all servers
	if len(s.hashes) > MaxExact {
		s.estimate()
	}
}

// Merge adds the names of other. The result is exact if both are, however many names there are.
func (s *Sketch) Merge(other *Sketch) {
	if other.ranks != nil && s.ranks == nil {
		s.estimate()
	}
	for i, rank := range other.ranks {
		s.ranks[i] = max(s.ranks[i], rank)
	}
	for h := range other.hashes {
		s.addHash(h)
	}
}

// Count returns the number of names. If it is not exact, it is an estimate with StandardError. In
// an exact Sketch, two of n names count as one with a probability of n²/2^65.
func (s *Sketch) Count() (n int, exact bool) {
	if s.ranks == nil {
		return len(s.hashes), true
	}
	var counts [rankBits + 2]float64 // registers by rank
	for _, rank := range s.ranks {
		counts[rank]++
	}
	const m = float64(registers)
	z := m * tau(1-counts[rankBits+1]/m)
	for k := rankBits; k >= 1; k-- {
		z = (z + counts[k]) / 2
	}
	z += m * sigma(counts[0]/m)
	return int(math.Round(min(m*m/(2*math.Ln2*z), 1<<53))), false // infinite if all ranks are the highest
}

// AppendBinary implements encoding.BinaryAppender. The error is always nil.
func (s *Sketch) AppendBinary(b []byte) ([]byte, error) {
	if s.ranks != nil {
		return append(append(b, kindRegisters), s.ranks...), nil
	}
	b = append(b, kindHashes)
	for h := range s.hashes {
		b = binary.BigEndian.AppendUint64(b, h)
	}
	return b, nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. The only error is ErrMalformed.
func (s *Sketch) UnmarshalBinary(data []byte) error {
	if len(data) == 0 {
		return ErrMalformed
	}
	next, kind, body := Sketch{}, data[0], data[1:]
	switch {
	case kind == kindHashes && len(body)%8 == 0 && len(body) <= 8*MaxExact:
		for ; len(body) > 0; body = body[8:] {
			next.addHash(binary.BigEndian.Uint64(body))
		}
	case kind == kindRegisters && len(body) == registers:
		for _, rank := range body {
			if rank > rankBits+1 {
				return ErrMalformed
			}
		}
		next.ranks = append([]byte{}, body...)
	default:
		return ErrMalformed
	}
	*s = next
	return nil
}

// addHash adds the hash of a name.
func (s *Sketch) addHash(h uint64) {
	if s.ranks != nil {
		i := h >> rankBits
		rank := min(bits.LeadingZeros64(h<<indexBits), rankBits) + 1
		s.ranks[i] = max(s.ranks[i], byte(rank))
		return
	}
	if s.hashes == nil {
		s.hashes = map[uint64]struct{}{}
	}
	s.hashes[h] = struct{}{}
}

// estimate replaces the hashes by registers.
func (s *Sketch) estimate() {
	hashes := s.hashes
	s.hashes, s.ranks = nil, make([]byte, registers)
	for h := range hashes {
		s.addHash(h)
	}
}

// sigma is Ertl's σ: x + Σ x^(2^k) 2^(k-1).
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	for y, z := 1.0, x; ; y *= 2 {
		x *= x
		before := z
		if z += x * y; z == before {
			return z
		}
	}
}

// tau is Ertl's τ: (1 - x - Σ (1 - x^(2^-k))² 2^-k) / 3.
func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	for y, z := 0.5, 1-x; ; y /= 2 {
		x = math.Sqrt(x)
		before := z
		if z -= (1 - x) * (1 - x) * y; z == before {
			return z / 3
		}
	}
}
