package session

import "hash/maphash"

// clientTable maps client ids to their open sessions. It is a hash table of pointers with open
// addressing (Knuth, The Art of Computer Programming, vol. 3, 6.4, algorithms L and R). The key is
// in the session already, so the table does not store it: 15 bytes per session at 10,000 sessions,
// where a Go map takes 56. localClients.mu guards it.
type clientTable struct {
	seed  maphash.Seed
	tags  []uint8    // per slot: 0 if it is empty, else 8 bits of the hash, to skip most comparisons of ids
	slots []*Session // its length is a power of two
	count int
}

// minSlots is the initial number of slots.
const minSlots = 16

func newClientTable() clientTable {
	return clientTable{seed: maphash.MakeSeed(), tags: make([]uint8, minSlots), slots: make([]*Session, minSlots)}
}

// home returns the slot at which the search for client begins, and the client's tag.
func (t *clientTable) home(client string) (i int, tag uint8) {
	h := maphash.String(t.seed, client)
	return int(h) & (len(t.slots) - 1), uint8(h>>56) | 1
}

// find returns the slot of client, or the empty slot where it belongs.
func (t *clientTable) find(client string) (i int, tag uint8) {
	i, tag = t.home(client)
	for t.tags[i] != 0 && (t.tags[i] != tag || t.slots[i].client != client) {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i, tag
}

// get returns the session of client, or nil.
func (t *clientTable) get(client string) *Session {
	i, _ := t.find(client)
	return t.slots[i]
}

// put makes s the session of its client.
func (t *clientTable) put(s *Session) {
	if t.count >= len(t.slots)/4*3 {
		t.resize(2 * len(t.slots))
	}
	i, tag := t.find(s.client)
	if t.slots[i] == nil {
		t.count++
	}
	t.tags[i], t.slots[i] = tag, s
}

// remove deletes the session of client.
func (t *clientTable) remove(client string) {
	i, _ := t.find(client)
	if t.slots[i] == nil {
		return
	}
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.tags[j] != 0; j = (j + 1) & mask {
		// Slot i is empty now. An entry whose search passes i must move there, or find would miss
		// it.
		if home, _ := t.home(t.slots[j].client); (j-home)&mask >= (j-i)&mask {
			t.tags[i], t.slots[i] = t.tags[j], t.slots[j]
			i = j
		}
	}
	t.tags[i], t.slots[i] = 0, nil
	if t.count--; t.count < len(t.slots)/8 && len(t.slots) > minSlots {
		t.resize(len(t.slots) / 2)
	}
}

func (t *clientTable) resize(n int) {
	old := t.slots
	t.tags, t.slots, t.count = make([]uint8, n), make([]*Session, n), 0
	for _, s := range old {
		if s != nil {
			t.put(s)
		}
	}
}
