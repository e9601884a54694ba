package delivery

import (
	"slices"
	"sync"
	"time"

	"switchboard/broker/peer"
	"switchboard/internal/slots"
)

const (
	// keepTime is the shortest time that an id is remembered. It is longer than the detection of a
	// failover takes.
	keepTime = time.Minute
	// maxQueues bounds the queues whose ids are remembered in one keepTime.
	maxQueues = 1 << 17
	// maxUncertain bounds the queues in which a failed call may have stored a message. Above it,
	// anyQueue is one more.
	maxUncertain = 1 << 12
	// maxHistories bounds the earlier histories of one queue.
	maxHistories = 8
	// unknownPrev is the id before a message if it is not known.
	unknownPrev = -1
)

// queueKey names the queue of a channel or a client.
type queueKey struct {
	kind peer.Kind
	name string
}

// anyQueue is in the place of queues that are not remembered.
var anyQueue queueKey

// storedIDs are the newest ids that the store has acknowledged in one queue. A history is the time
// between two moments at which the store may have lost messages. The store must be asked for the
// last id of each history: a later id does not prove that it still has an earlier one.
type storedIDs struct {
	last    int64   // in the current history
	earlier []int64 // last ids of earlier histories that are not confirmed yet, oldest first
	epoch   uint64  // of the current history
}

// startHistory starts a new history with id.
func (ids *storedIDs) startHistory(id int64) {
	if len(ids.earlier) == maxHistories { // too many failovers without a Confirm: drop the newest of the earlier ones
		ids.earlier = ids.earlier[:maxHistories-1]
	}
	ids.earlier = append(slices.Clip(ids.earlier), ids.last) // copies share the old array
	ids.last = id
}

// reportedLoss is a message that was lost, and for which the store has a loss marker. The next
// failover may lose the marker.
type reportedLoss struct {
	id int64
	at time.Time
}

// storedLog remembers which messages the store has acknowledged to this server. Redis may lose them
// in a failover, and only this server can know that they existed.
type storedLog struct {
	epoch  func(name string) uint64 // changes when a history of a queue begins, before the first write in it
	onLoss func()                   // called when an answer of the store shows a loss

	mu            sync.Mutex // guards the fields below
	recent, older map[queueKey]storedIDs
	rotatedAt     time.Time // when recent began
	// In the time of recent, and in that of older, messages were not remembered.
	recentPartial, olderPartial bool

	uncertain map[queueKey]struct{}
	reported  map[queueKey][]reportedLoss // of the last keepTime, oldest first
}

// newStoredLog returns an empty log. A nil epoch means that the history never changes.
func newStoredLog(epoch func(name string) uint64, lost func()) *storedLog {
	if epoch == nil {
		epoch = func(string) uint64 { return 0 }
	}
	return &storedLog{epoch: epoch, onLoss: lost, recent: map[queueKey]storedIDs{}, rotatedAt: time.Now(), uncertain: map[queueKey]struct{}{}, reported: map[queueKey][]reportedLoss{}}
}

// add records that the store acknowledged message id. prev is the id before it, or unknownPrev. It
// returns false if there are too many queues, and the message is not remembered.
func (l *storedLog) add(key queueKey, id, prev int64) (remembered bool) {
	epoch := l.epoch(key.name)
	l.mu.Lock()
	defer l.mu.Unlock()
	ids, known := l.recent[key]
	if !known {
		ids, known = l.older[key]
	}
	switch {
	case !known:
		if len(l.recent) >= maxQueues {
			l.recentPartial = true
			return false
		}
		ids = storedIDs{last: id}
	case ids.epoch != epoch:
		ids.startHistory(id)
	case prev != unknownPrev && prev < ids.last && id > ids.last:
		// The message before id is older than one that was acknowledged already.
		ids.startHistory(id)
		l.onLoss()
	default: // answers may arrive in any order
		ids.last = max(ids.last, id)
	}
	ids.epoch = epoch
	l.recent[key] = ids
	return true
}

// partial reports whether messages of the last keepTime were not remembered.
func (l *storedLog) partial() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recentPartial || l.olderPartial
}

// addReported records a loss that the store has just reported with a marker.
func (l *storedLog) addReported(key queueKey, id, marker int64) {
	l.add(key, marker, unknownPrev)
	l.mu.Lock()
	defer l.mu.Unlock()
	list := slices.DeleteFunc(l.reported[key], func(r reportedLoss) bool { return r.id == id })
	l.reported[key] = append(list, reportedLoss{id, time.Now()})
}

// reportedLosses returns the ids that addReported recorded for a queue.
func (l *storedLog) reportedLosses(key queueKey) (ids []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.reported[key] {
		ids = append(ids, r.id)
	}
	return ids
}

// addUncertain records a queue in which a failed call may have stored a message without a hint. If
// there are too many queues, it records anyQueue instead.
func (l *storedLog) addUncertain(key queueKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.uncertain[key]; !known && len(l.uncertain) >= maxUncertain {
		key = anyQueue
	}
	l.uncertain[key] = struct{}{}
}

// hasUncertain reports whether addUncertain recorded a queue.
func (l *storedLog) hasUncertain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.uncertain) > 0
}

// takeUncertain returns and removes the queues that addUncertain recorded.
func (l *storedLog) takeUncertain() map[queueKey]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.uncertain
	l.uncertain = map[queueKey]struct{}{}
	return taken
}

// snapshot returns a copy of the log of the queues in the slots.
func (l *storedLog) snapshot(of *slots.Set) map[queueKey]storedIDs {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[queueKey]storedIDs)
	for _, log := range []map[queueKey]storedIDs{l.older, l.recent} {
		for key, ids := range log {
			if of.HasName(key.name) {
				all[key] = ids
			}
		}
	}
	return all
}

// removeConfirmed removes earlier histories whose last ids are confirmed. It keeps histories that
// were added meanwhile.
func (l *storedLog) removeConfirmed(key queueKey, confirmed []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range []map[queueKey]storedIDs{l.recent, l.older} {
		ids, known := m[key]
		n := len(confirmed)
		if known && n > 0 && len(ids.earlier) >= n && slices.Equal(ids.earlier[:n], confirmed) {
			if ids.earlier = ids.earlier[n:]; len(ids.earlier) == 0 {
				ids.earlier = nil
			}
			m[key] = ids
		}
	}
}

// rotate drops old ids. It is not called while the store may have failed over.
func (l *storedLog) rotate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.rotatedAt) < keepTime {
		return
	}
	l.older, l.recent, l.rotatedAt = l.recent, make(map[queueKey]storedIDs), time.Now()
	l.olderPartial, l.recentPartial = l.recentPartial, false
	for key, list := range l.reported {
		list = slices.DeleteFunc(list, func(r reportedLoss) bool { return time.Since(r.at) >= keepTime })
		if l.reported[key] = list; len(list) == 0 {
			delete(l.reported, key)
		}
	}
}
