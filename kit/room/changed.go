package room

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"time"

	"switchboard/kit/index"
)

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
