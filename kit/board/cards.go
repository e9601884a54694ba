package board

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

// allList is the list with every board that has a player, all with the score 0, and so in the order
// of the names.
const allList = "all"

// Run makes a round every second, with jitter, until ctx ends. Only the list of boards needs it.
func (b *Boards) Run(ctx context.Context) error { return b.cards.Run(ctx, b.host.Logger(), "boards") }

// Round computes the cards of the boards that have changed or are due, see [kit.Cards].
func (b *Boards) Round(ctx context.Context) error { return b.cards.Round(ctx) }

// computeCards computes the cards of boards. The time of the store, which is read before the
// players, is the version: the end of a season is no message of the channel.
func (b *Boards) computeCards(ctx context.Context, names []string) []kit.Computed {
	reads := make([]queue.StateRead, len(names))
	for i, name := range names {
		reads[i] = queue.StateRead{Channel: channelPrefix + name, Fields: []string{topField}}
	}
	list := make([]kit.Computed, len(names))
	var group errgroup.Group
	for i, page := range b.host.ReadStates(ctx, reads) {
		if list[i].Err = page.Err; page.Err != nil {
			continue
		}
		group.Go(func() error {
			now := time.UnixMilli(page.Value.Clock)
			list[i].Card = index.Card{ID: names[i], Version: queue.IDAt(now)}
			var has bool
			switch has, list[i].Err = b.hasPlayers(ctx, names[i], now); {
			case has:
				list[i].Card.Lists = map[string]int64{allList: 0}
			case list[i].Err == nil && len(page.Value.Fields) > 0:
				list[i].Err = b.endTop(ctx, names[i], page.Value.Fields[0].ID)
			}
			return nil
		})
	}
	_ = group.Wait() // each error is in the list
	return list
}

// hasPlayers reports whether a board has a player in the season at now, or in a past one that is
// kept. A board without rules has: other brokers may know them.
func (b *Boards) hasPlayers(ctx context.Context, name string, now time.Time) (bool, error) {
	rules, err := b.opts.board(name)
	if err != nil {
		return true, nil
	}
	s := rules.current(now)
	for past := 0; ; past++ {
		p, err := b.opts.Store.read(ctx, query{board: name, season: s, sign: 1, limit: 1})
		if err != nil || p.count > 0 || rules.schedule == nil || past == rules.Keep {
			return p.count > 0, err
		}
		s = rules.seasonAt(time.UnixMilli(s.start - 1))
	}
}
