// Package slots has sets of the hash slots of a Redis Cluster. The slot of a key decides which
// master holds it. A set names the keys that the failover of a master may have lost.
package slots

import "strings"

// Count is the number of slots.
const Count = 16384

// Set is a set of slots. The zero value is empty.
type Set [Count / 64]uint64

// All returns the set of all slots, for a failover of a store that is no Cluster, or whose slots
// are not known.
func All() (s Set) {
	for i := range s {
		s[i] = ^uint64(0)
	}
	return s
}

// Add adds the slots from first to last.
func (s *Set) Add(first, last int) {
	for slot := max(first, 0); slot <= min(last, Count-1); slot++ {
		s[slot/64] |= 1 << (slot % 64)
	}
}

// AddAll adds all slots of other.
func (s *Set) AddAll(other *Set) {
	for i := range s {
		s[i] |= other[i]
	}
}

// Has reports whether the set has a slot.
func (s *Set) Has(slot int) bool { return s[slot/64]&(1<<(slot%64)) != 0 }

// HasKey reports whether the set has the slot of a key.
func (s *Set) HasKey(key string) bool { return s.Has(OfKey(key)) }

// HasName reports whether the set has the slot of the keys that have name in braces.
func (s *Set) HasName(name string) bool { return s.Has(Of(name)) }

// Empty reports whether the set is empty.
func (s *Set) Empty() bool { return *s == Set{} }

// Of returns the slot of the keys that have name in braces, such as ch_{name}. A name is that of a
// channel, a client, a user or a server, and has no braces.
func Of(name string) int { return int(crc16(name) % Count) }

// OfKey returns the slot of a key. If the key has text in braces, that decides alone; the first
// braces count.
func OfKey(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	return Of(key)
}

// crc16 returns the CRC-16/XMODEM of text.
func crc16(text string) (sum uint16) {
	for i := range len(text) {
		sum = sum<<8 ^ table[byte(sum>>8)^text[i]]
	}
	return sum
}

var table = func() (t [256]uint16) {
	for i := range t {
		sum := uint16(i) << 8
		for range 8 {
			if carry := sum&0x8000 != 0; carry {
				sum = sum<<1 ^ 0x1021
			} else {
				sum <<= 1
			}
		}
		t[i] = sum
	}
	return t
}()
