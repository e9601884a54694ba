package room

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/internal/wire"
	"switchboard/kit/index"
)

// Times and sizes of the round.
const (
	roundEvery = time.Second
	// taskLease is how long a broker has for the tasks of a batch.
	taskLease = 10 * time.Second
	// batchSize is how many rooms are read in one round trip.
	batchSize = 100
	// lobbiesAtOnce is how many lobbies of a batch are compared at once.
	lobbiesAtOnce = 4
	// Every room is read once in sweepLeast to sweepMost, since a server that dies leaves members away
	// without a call. All brokers together read sweepRate rooms a second in between.
	sweepLeast = 5 * time.Second
	sweepMost  = time.Minute
	sweepRate  = 200
	// forgetEvery is how often a broker forgets removed cards.
	forgetEvery = time.Minute
)

// lobbyTask is the prefix of the ids of lobbies on the due list. No id of a room has a slash.
const lobbyTask = "lobby/"

// Run computes the cards of rooms that have changed, and makes a round every second, with jitter,
// until ctx ends.
func (r *Rooms) Run(ctx context.Context) error {
	var settling sync.WaitGroup
	defer settling.Wait()
	settling.Go(func() { r.settle(ctx) })
	log, forget := r.host.Logger(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(roundEvery/2 + rand.N(roundEvery)):
		}
		err := r.Round(ctx)
		if err == nil && time.Since(forget) > forgetEvery {
			r.known.forget()
			err, forget = r.index.Sweep(ctx, 10*batchSize), time.Now()
		}
		if err != nil && ctx.Err() == nil {
			log.Warn().Err(err).Msg("a round over the rooms is incomplete")
		}
	}
}

// Round looks at the rooms that are due: it computes their cards, ends those whose time has come,
// and notes when each is due again. Several brokers may run it at once: each room is handed to one.
func (r *Rooms) Round(ctx context.Context) error {
	sweep, err := r.sweepTime(ctx)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		tasks, err := r.index.Take(ctx, batchSize, taskLease)
		if err != nil {
			return err
		}
		if err := r.runTasks(ctx, tasks, sweep); err != nil {
			return err
		}
		if len(tasks) < batchSize {
			break
		}
	}
	return nil
}

// sweepTime returns the time after which a room is read again.
func (r *Rooms) sweepTime(ctx context.Context) (time.Duration, error) {
	counts, err := r.index.Count(ctx, orderCreated)
	if err != nil {
		return 0, err
	}
	return min(max(sweepLeast, time.Duration(counts[0])*time.Second/sweepRate), sweepMost), nil
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
	if !used {
		return r.index.Done(ctx, map[index.Task]time.Duration{t: 0})
	}
	return r.index.Done(ctx, map[index.Task]time.Duration{t: lobbyRefresh})
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

// errKeep means that a room has changed and must not be removed.
var errKeep = errors.New("the room has changed")

// endIfDue removes a room whose time has come.
func (r *Rooms) endIfDue(ctx context.Context, s *seen) error {
	at, why := s.ends(r)
	if at == 0 || at > s.clock {
		return nil
	}
	err := r.remove(ctx, s.id, why, func(now *Snapshot) error {
		if now.Version != s.snapshot.Version || now.nextID != s.snapshot.nextID || why == ReasonEmpty && len(now.Members) > 0 {
			return errKeep
		}
		return nil
	})
	if errors.Is(err, errKeep) || refused(err, wire.NotFound) {
		return nil
	}
	return err
}

// ends returns when the room ends, Unix ms, and why. 0 means that it does not end while it is as it
// is. A finished room stays for its time, also if it is empty.
func (s *seen) ends(r *Rooms) (at int64, why Reason) {
	switch {
	case s.snapshot == nil:
		return 0, ""
	case s.snapshot.Room.Status == Finished:
		return s.snapshot.Room.Finished + r.mode(s.snapshot).FinishedLife.Milliseconds(), ReasonFinished
	case len(s.snapshot.Members) == 0:
		return s.card.Lists[listEmpty] + r.mode(s.snapshot).EmptyLife.Milliseconds(), ReasonEmpty
	}
	return 0, ""
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
