package session

import "hash/maphash"

// roster finds an open session by its client. It is a table of pointers with open addressing (Knuth, The Art of
// Computer Programming, vol. 3, 6.4, algorithms L and R), since the name is in the session already: a map of 10,000 takes
// 56 bytes for each, this 15.
type roster struct {
	seed  maphash.Seed
	tags  []uint8 // of each slot: 0 when it is empty, else some bits of the hash, so that few others' names are read
	slots []*Session
	count int
}

// fewestSlots is a power of two, as every number of slots.
const fewestSlots = 16

func newRoster() roster {
	return roster{seed: maphash.MakeSeed(), tags: make([]uint8, fewestSlots), slots: make([]*Session, fewestSlots)}
}

// home is where the search for client begins.
func (r *roster) home(client string) (i int, tag uint8) {
	h := maphash.String(r.seed, client)
	return int(h) & (len(r.slots) - 1), uint8(h>>56) | 1
}

// find is the slot of client, or the empty one where it belongs.
func (r *roster) find(client string) (i int, tag uint8) {
	i, tag = r.home(client)
	for r.tags[i] != 0 && (r.tags[i] != tag || r.slots[i].client != client) {
		i = (i + 1) & (len(r.slots) - 1)
	}
	return i, tag
}

// get is the session of client, or nil.
func (r *roster) get(client string) *Session {
	i, _ := r.find(client)
	return r.slots[i]
}

// put makes s the session of its client.
func (r *roster) put(s *Session) {
	if r.count >= len(r.slots)/4*3 {
		r.resize(2 * len(r.slots))
	}
	i, tag := r.find(s.client)
	if r.slots[i] == nil {
		r.count++
	}
	r.tags[i], r.slots[i] = tag, s
}

// remove takes the session of client out.
func (r *roster) remove(client string) {
	i, _ := r.find(client)
	if r.slots[i] == nil {
		return
	}
	mask := len(r.slots) - 1
	for j := (i + 1) & mask; r.tags[j] != 0; j = (j + 1) & mask {
		// Whoever would not be found any more behind the gap goes into it.
		if home, _ := r.home(r.slots[j].client); (j-home)&mask >= (j-i)&mask {
			r.tags[i], r.slots[i] = r.tags[j], r.slots[j]
			i = j
		}
	}
	r.tags[i], r.slots[i] = 0, nil
	if r.count--; r.count < len(r.slots)/8 && len(r.slots) > fewestSlots {
		r.resize(len(r.slots) / 2)
	}
}

func (r *roster) resize(n int) {
	old := r.slots
	r.tags, r.slots, r.count = make([]uint8, n), make([]*Session, n), 0
	for _, s := range old {
		if s != nil {
			r.put(s)
		}
	}
}
