package room

import (
	"context"
	"maps"
	"sync"
	"time"

	"switchboard/kit"
	"switchboard/queue"
)

// known is what this process knows of rooms whose cards it has computed. If the channel of a room
// has the same last id, and no time has come, then the room has the same card. If the index has
// the card of the same version, too, there is nothing to do. So the round reads one field of a room
// in which nothing happens and the version of its card, and not all members and lists.
type known struct {
	mu    sync.Mutex // guards the field below
	rooms map[string]knownRoom
}

// knownRoom is a room as it was read.
type knownRoom struct {
	at   int64     // the last id of the channel
	card int64     // the version of the card in the index
	next int64     // when the room changes without an id, the store's clock in Unix ms; 0 for never
	read time.Time // when it was read in full
}

func newKnown() known { return known{rooms: map[string]knownRoom{}} }

// add adds rooms whose cards are stored, and forgets those that do not exist.
func (k *known) add(r *Rooms, rooms []seen) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range rooms {
		s := &rooms[i]
		next, passed := s.changes(r)
		if s.snapshot == nil || s.err != nil || passed {
			delete(k.rooms, s.id)
			continue
		}
		k.rooms[s.id] = knownRoom{s.snapshot.At, s.stored, next, time.Now()}
	}
}

// of returns what is known of a room. ok is false if it must be read in full.
func (k *known) of(id string) (room knownRoom, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	room, ok = k.rooms[id]
	return room, ok && time.Since(room.read) < kit.SweepMost
}

// forget removes rooms that must be read in full anyway.
func (k *known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.rooms, func(_ string, room knownRoom) bool { return time.Since(room.read) >= kit.SweepMost })
}

// unchanged returns the rooms in which nothing has happened, with the time until each changes
// without an id, 0 for never. It reads one short field of each room, in one round trip, and the
// versions of the cards in another one.
func (r *Rooms) unchanged(ctx context.Context, ids []string) (map[string]time.Duration, error) {
	var reads []queue.StateRead
	var rooms []knownRoom
	var names []string
	for _, id := range ids {
		if room, ok := r.known.of(id); ok {
			reads = append(reads, queue.StateRead{Channel: Channel(id), Fields: []string{fieldNext}})
			rooms, names = append(rooms, room), append(names, id)
		}
	}
	versions, err := r.index.Versions(ctx, names...)
	if err != nil {
		return nil, err
	}
	same := map[string]time.Duration{}
	for i, page := range r.host.ReadStates(ctx, reads) {
		now, room := &page.Value, rooms[i]
		isDue := func(at int64) bool { return at != 0 && at <= now.Clock }
		if page.Err != nil || now.ID != room.at || versions[i] != room.card || isDue(now.Due) || isDue(room.next) {
			continue
		}
		same[names[i]] = 0
		if room.next != 0 {
			same[names[i]] = time.Duration(room.next-now.Clock+1) * time.Millisecond
		}
	}
	return same, nil
}
