package board

import (
	"context"
	"sync"
	"time"

	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/kit/budget"
	"switchboard/kit/index"
)

// newBudget returns the budget of the boards that users begin.
func (b *Boards) newBudget() *budget.Budget {
	return budget.New(budget.Options{
		Store: b.opts.Budget, Kind: "boards", Setting: "kit.boards.per_user", Most: b.opts.PerUser, Ended: b.endedOf,
		Log: b.host.Logger(),
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
	u := &state.Update{Ops: []state.Op{kit.Delete(topField)}, If: []state.Condition{kit.Same(topField, id)}}
	if _, err = kit.HostStore(b.host).Change(ctx, channelPrefix+name, u, false); kit.IsRefused(err) {
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

// forget removes users from all boards, as players, in all seasons that are kept. It returns the
// number of scores. It reads all boards once for all users.
func (b *Boards) forget(ctx context.Context, users []string) (removed int, err error) {
	boards := map[string]bool{}
	for _, user := range users { // a new board may not be in the list yet
		begun, err := b.budget.Objects(ctx, user)
		if err != nil {
			return 0, err
		}
		for _, name := range begun {
			boards[name] = true
		}
	}
	for cards, err := range index.Pages(ctx, b.opts.Index, index.Query{List: allList}) {
		if err != nil {
			return 0, err
		}
		for _, c := range cards {
			boards[c.ID] = true
		}
	}
	for name := range boards {
		n, err := b.forgetOn(ctx, name, users)
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, b.budget.Forget(ctx, users...)
}

// forgetOn removes users from a board.
func (b *Boards) forgetOn(ctx context.Context, name string, users []string) (removed int, err error) {
	rules, err := b.opts.board(name)
	if err != nil {
		return 0, nil // the settings have changed: its keys end with their season or life
	}
	var queries []query
	s := rules.current(b.opts.now())
	for past := 0; ; past++ {
		for _, user := range users {
			queries = append(queries, query{board: name, season: s, sign: rules.sign(), player: user, limit: 1})
		}
		if rules.schedule == nil || past == rules.Keep {
			break
		}
		s = rules.seasonAt(time.UnixMilli(s.start - 1))
	}
	parts, err := b.readEach(ctx, queries)
	if err != nil {
		return 0, err
	}
	for i, p := range parts {
		if p.before < 0 {
			continue
		}
		if _, err := b.Remove(ctx, name, queries[i].player, queries[i].season.id); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
