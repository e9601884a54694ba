package board

import (
	"context"
	"errors"
	"sync"
	"time"

	"switchboard/broker/extension"
	"switchboard/internal/state"
	"switchboard/kit/budget"
)

// newBudget returns the budget of the boards that users begin.
func (b *Boards) newBudget() *budget.Budget {
	return budget.New(budget.Options{
		Store: b.opts.Budget, Kind: "boards", Setting: "kit.boards.per_user", Most: b.opts.PerUser, Ended: b.endedOf,
	})
}

// endedOf returns those of the boards that have no players.
func (b *Boards) endedOf(ctx context.Context, _ string, names []string) (ended []string, err error) {
	for _, name := range names {
		has, err := b.hasPlayers(ctx, name, b.opts.now())
		if err != nil {
			return nil, err
		}
		if !has {
			ended = append(ended, name)
		}
	}
	return ended, nil
}

// charge charges a board of a pattern to the user that submits its first score. Boards that are
// configured by name are not charged.
func (b *Boards) charge(ctx context.Context, rules *Board, name, user string) error {
	if !rules.pattern || b.known.has(name) {
		return nil
	}
	has, err := b.hasPlayers(ctx, name, b.opts.now())
	if err != nil {
		return err
	}
	if !has { // if the score is refused, the budget has the board until it is spent
		_, err = b.budget.Charge(ctx, user, name)
		return err
	}
	b.known.add(name)
	return nil
}

// endTop removes the field top of a board without players, if Board.Life has ended it and the field
// has not changed since it was read.
func (b *Boards) endTop(ctx context.Context, name string, id int64) error {
	rules, err := b.opts.board(name)
	if err != nil || rules.Life == 0 {
		return nil
	}
	_, err = b.host.Change(ctx, channelPrefix+name, &state.Update{
		Ops: []state.Op{{Field: topField, Kind: state.Delete}}, Writer: state.BackendHolder,
		If: []state.Condition{{Field: topField, Kind: state.IsID, ID: id}},
	}, extension.ChangeOptions{})
	if _, refused := errors.AsType[*state.Refusal](err); refused {
		return nil // it has a player again
	}
	return err
}

const (
	knownFor = time.Minute // how long a board that has players is assumed to have some
	maxKnown = 10_000
)

// known is the boards that have players, so that a submission costs no read.
type known struct {
	mu    sync.Mutex // guards the field below
	until map[string]time.Time
}

func (k *known) has(board string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now().Before(k.until[board])
}

func (k *known) add(board string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.until == nil || len(k.until) >= maxKnown {
		k.until = map[string]time.Time{}
	}
	k.until[board] = time.Now().Add(knownFor)
}
