package board

import (
	"context"
	"time"

	"switchboard/broker/extension"
	"switchboard/kit/index"
)

// owned returns the scores as what users own. The budget counts boards, not scores.
func (b *Boards) owned() []extension.Owned {
	return []extension.Owned{{Kind: "boards", Usage: b.budget.Usage, Forget: b.forget}}
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
