package room

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"switchboard/kit/index"
)

// Times of the pending rooms.
const (
	// gather is how long the changes of a room wait for others before its card is computed: a room
	// that fills computes one card and not one for each player.
	gather = 100 * time.Millisecond
	// noteFor is how long a note on the due list serves further changes of the room. It is below
	// dueAfter, so that no round has taken the note.
	noteFor = dueAfter / 2
	// pendingBatch is how many cards are computed at once. A lobby receives one message for them.
	pendingBatch = 32
)

// pending is the rooms that this process has changed and whose cards it has yet to compute.
type pending struct {
	changed chan struct{} // one slot: a room was added
	turn    chan struct{} // one slot: it is full while cards are computed

	mu    sync.Mutex           // guards the fields below
	rooms map[string]struct{}  // whose cards are yet to be computed
	notes map[string]time.Time // when a room was noted on the due list
	// others is set if one of the rooms was changed in a way that no search counts, and taken if one
	// of those whose cards are being computed was.
	others, taken bool
}

func newPending() pending {
	return pending{
		changed: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		rooms: map[string]struct{}{}, notes: map[string]time.Time{},
	}
}

// add adds a room that has changed. other means that no search counts the change.
func (p *pending) add(id string, other bool) {
	p.mu.Lock()
	p.rooms[id] = struct{}{}
	p.others = p.others || other
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// take returns the rooms and removes them. It also forgets old notes.
func (p *pending) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.notes, func(_ string, at time.Time) bool { return time.Since(at) >= noteFor })
	ids := slices.Collect(maps.Keys(p.rooms))
	clear(p.rooms)
	p.others, p.taken = false, p.others
	return ids
}

// done records that the cards of the rooms that take returned are computed.
func (p *pending) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = false
}

// hasOthers reports whether a search has to wait for cards.
func (p *pending) hasOthers() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.others || p.taken
}

// isNoted reports whether the due list has a note about the room that no round can have taken.
func (p *pending) isNoted(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, found := p.notes[id]
	return found && time.Since(at) < noteFor
}

// noted records that the due list has received a note about the room, after the time at.
func (p *pending) noted(id string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes[id] = at
}

// due notes on the due list that a room is about to change, so that a round computes its card if
// this process ends before it does so.
func (r *Rooms) due(ctx context.Context, id string) error {
	if r.pending.isNoted(id) {
		return nil
	}
	at := time.Now()
	err := r.index.Schedule(ctx, dueAfter, id)
	if err == nil {
		r.pending.noted(id, at)
	}
	return err
}

// Settle computes the cards of the rooms that this process has changed. Otherwise this happens
// within 0.1 s. After an error, the round of any broker computes them.
func (r *Rooms) Settle(ctx context.Context) error {
	select {
	case r.pending.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { r.pending.done(); <-r.pending.turn }()
	// Other operations have changed some of the rooms: the end of this one must not end the work.
	ctx = context.WithoutCancel(ctx)
	for ids := range slices.Chunk(r.pending.take(), pendingBatch) {
		if _, err := r.refresh(ctx, ids...); err != nil {
			r.log.Warn().Err(err).Strs("rooms", ids).Msg("the cards of some rooms are computed later")
		}
	}
	return nil
}

// settleOthers is Settle for a search of a place. It does nothing if only quick joins have changed
// rooms: the search counts them.
func (r *Rooms) settleOthers(ctx context.Context) error {
	if !r.pending.hasOthers() {
		return nil
	}
	return r.Settle(ctx)
}

// settle calls Settle soon after a room has changed, until ctx ends.
func (r *Rooms) settle(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.pending.changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(gather):
		}
		_ = r.Settle(ctx) // only ctx can end it
	}
}

// dueAfter is how soon the round looks at a room that is about to change.
const dueAfter = time.Second

// refresh computes the cards of rooms from their channels, and shows them in lists and lobbies. It
// sends the events of rooms that have ended. It returns what it has read.
func (r *Rooms) refresh(ctx context.Context, ids ...string) ([]seen, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	stored, err := r.index.Get(ctx, ids...) // before the looks: a look is at least as new
	if err != nil {
		return nil, err
	}
	var errs []error
	var rooms []seen
	var old, cards []index.Card
	for i, l := range lookAt(ctx, r.host, ids) {
		if l.err != nil {
			errs = append(errs, l.err)
			continue
		}
		s := seen{look: l, card: l.indexCard(stored[i]), stored: stored[i].Version}
		if !sameCard(stored[i], s.card) {
			s.stored = s.card.Version
		}
		if l.ended != nil {
			s.err = r.sendEnded(ctx, l.id, *l.ended)
		}
		rooms = append(rooms, s)
		old, cards = append(old, stored[i]), append(cards, s.card)
	}
	if err := r.putCards(ctx, old, cards); err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	r.known.add(r, rooms)
	return rooms, errors.Join(errs...)
}

// seen is a room that was looked at, and its card.
type seen struct {
	look
	card   index.Card
	stored int64 // the version of the card in the index, unless it has a newer one
}

// putCards stores the cards that differ from the old ones, and shows all of them in the lobbies.
func (r *Rooms) putCards(ctx context.Context, old, cards []index.Card) error {
	var changed []index.Card
	for i, c := range cards {
		if !sameCard(old[i], c) {
			changed = append(changed, c)
		}
	}
	if len(changed) > 0 {
		if err := r.index.Put(ctx, changed...); err != nil {
			return err
		}
	}
	return r.syncLobbies(ctx, old, cards)
}

// sameCard reports whether two cards differ at most in the version.
func sameCard(a, b index.Card) bool {
	return maps.Equal(a.Lists, b.Lists) && bytes.Equal(a.Data, b.Data)
}
