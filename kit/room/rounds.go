package room

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

const (
	// batchSize is how many rooms are read in one round trip.
	batchSize = 100
	// lobbiesAtOnce is how many lobbies of a batch are compared at once.
	lobbiesAtOnce = 4
)

// lobbyTask is the prefix of the ids of lobbies on the due list. No id of a room has a slash.
const lobbyTask = "lobby/"

// Run computes the cards of rooms that have changed, and makes a round every second, with jitter,
// until ctx ends.
func (r *Rooms) Run(ctx context.Context) error {
	var settling sync.WaitGroup
	defer settling.Wait()
	settling.Go(func() { r.settle(ctx) })
	return r.rounds().Run(ctx, r.host.Logger(), "rooms", r.Round)
}

// rounds are more frequent than those of [kit.Cards], since a server that dies leaves members away
// without a call.
func (r *Rooms) rounds() *kit.Rounds {
	return &kit.Rounds{
		Index: r.index, Lease: r.opts.Rounds, All: orderCreated, Batch: batchSize, SweepLeast: 5 * time.Second, SweepRate: 200, Forget: r.known.forget,
	}
}

// Round looks at the rooms that are due: it computes their cards, ends those whose time has come,
// and notes when each is due again.
func (r *Rooms) Round(ctx context.Context) error {
	return r.rounds().Take(ctx, func(tasks []index.Task, sweep time.Duration) error { return r.runTasks(ctx, tasks, sweep) })
}

// runTasks runs the tasks of a batch. A task that fails is due again after its lease.
func (r *Rooms) runTasks(ctx context.Context, tasks []index.Task, sweep time.Duration) error {
	var group errgroup.Group
	group.SetLimit(lobbiesAtOnce)
	rooms, ids := map[string]index.Task{}, []string(nil)
	for _, t := range tasks {
		if lobby, found := strings.CutPrefix(t.ID, lobbyTask); found {
			group.Go(func() error { return r.runLobby(ctx, t, lobby) })
			continue
		}
		rooms[t.ID], ids = t, append(ids, t.ID)
	}
	errs := []error{r.runRooms(ctx, rooms, ids, sweep)}
	return errors.Join(append(errs, group.Wait())...)
}

func (r *Rooms) runLobby(ctx context.Context, t index.Task, lobby string) error {
	used, err := r.refreshLobby(ctx, lobby)
	if err != nil {
		return err
	}
	var next time.Duration
	if used {
		next = lobbyRefresh
	}
	return r.index.Done(ctx, map[index.Task]time.Duration{t: next})
}

func (r *Rooms) runRooms(ctx context.Context, tasks map[string]index.Task, ids []string, sweep time.Duration) error {
	if len(ids) == 0 {
		return nil
	}
	done := make(map[index.Task]time.Duration, len(ids))
	again := func(id string, next time.Duration) {
		if next == 0 || next > sweep {
			next = sweep - rand.N(sweep/10) // spreads rooms that began at once
		}
		done[tasks[id]] = next
	}
	same, err := r.unchanged(ctx, ids)
	if err != nil {
		return err
	}
	for id, next := range same {
		again(id, next)
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { _, found := same[id]; return found })
	rooms, err := r.refresh(ctx, ids...)
	errs := []error{err}
	for i := range rooms {
		s := &rooms[i]
		if s.err == nil {
			s.err = r.endIfDue(ctx, s)
		}
		switch next, _ := s.changes(r); {
		case s.err != nil:
			errs = append(errs, s.err)
		case s.snapshot == nil:
			done[tasks[s.id]] = 0
		case next != 0:
			again(s.id, time.Duration(next-s.clock+1)*time.Millisecond)
		default:
			again(s.id, 0)
		}
	}
	return errors.Join(append(errs, r.index.Done(ctx, done))...)
}

// endIfDue removes a room whose time has come.
func (r *Rooms) endIfDue(ctx context.Context, s *seen) error {
	at, why := s.ends(r)
	if at == 0 || at > s.clock {
		return nil
	}
	err := r.remove(ctx, s.id, why, func(now *Snapshot) error {
		if now.Version != s.snapshot.Version || now.nextID != s.snapshot.nextID || len(s.snapshot.Members) == 0 && len(now.Members) > 0 {
			return errKept
		}
		return nil
	})
	if err == errKept || kit.HasCode(err, wire.NotFound) {
		return nil
	}
	return err
}

// ends returns when the room ends, Unix ms, and why. 0 means that it does not end while it is as it
// is.
func (s *seen) ends(r *Rooms) (at int64, why Reason) {
	if s.snapshot == nil {
		return 0, ""
	}
	mode, empty := r.mode(s.snapshot), len(s.snapshot.Members) == 0
	since := s.card.Lists[listEmpty]
	switch {
	case s.snapshot.Room.Status != Finished && empty:
		return since + mode.EmptyLife.Milliseconds(), ReasonEmpty
	case s.snapshot.Room.Status != Finished:
		return 0, ""
	}
	at = s.snapshot.Room.Finished + mode.FinishedLife.Milliseconds()
	if empty {
		at = min(at, since+mode.FinishedEmptyLife.Milliseconds())
	}
	return at, ReasonFinished
}

// changes returns when the room changes without an id, Unix ms: at its end, or that of a place. 0
// means never. passed reports whether such a time has come already.
func (s *seen) changes(r *Rooms) (next int64, passed bool) {
	if s.snapshot == nil {
		return 0, false
	}
	soonest := func(at int64) {
		switch {
		case at == 0:
		case at <= s.clock:
			passed = true
		case next == 0 || at < next:
			next = at
		}
	}
	at, _ := s.ends(r)
	soonest(at)
	for _, m := range s.snapshot.Members {
		soonest(m.Until)
	}
	return next, passed
}

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
