package board

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/janitor/task"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

// Card is a board in the list. The numbers are those of the current season.
type Card struct {
	Board  string `json:"board"`
	Order  string `json:"order"` // asc or desc
	Mode   Mode   `json:"mode"`
	Season string `json:"season,omitempty"` // its id
	Ends   int64  `json:"ends,omitempty"`   // the end of the season, Unix ms
	Count  int    `json:"count"`            // of players on the board
	First  *Entry `json:"first,omitempty"`  // nil without players
}

// Page is a part of the list of boards.
type Page struct {
	Boards []Card `json:"boards"`
	Cursor string `json:"cursor,omitempty"` // of the next page; "" if there is none
}

// List returns boards in the order of their names, at most limit of them, see kit.PageLimit. cursor
// is that of the previous page, or "". A board is in the list while it has a player, in the current
// season or in one that is kept. A new one is listed within about a second. A board that no pattern
// of Options.Boards matches any more is left out. Numbers are as of now.
func (b *Boards) List(ctx context.Context, cursor string, limit int) (Page, error) {
	if err := kit.PageLimit(&limit, true); err != nil {
		return Page{}, err
	}
	found, err := b.opts.Index.List(ctx, index.Query{List: allList, Cursor: cursor, Limit: limit})
	if err != nil {
		return Page{}, err
	}
	page := Page{Boards: make([]Card, 0, len(found.Cards)), Cursor: found.Next}
	var queries []query
	now := b.opts.now()
	for _, c := range found.Cards {
		rules, err := b.opts.board(c.ID)
		if err != nil { // the settings have changed
			continue
		}
		q := query{board: c.ID, season: rules.current(now), sign: rules.sign(), limit: 1}
		card := Card{Board: c.ID, Order: rules.Order, Mode: rules.Mode, Season: q.season.id}
		if card.Season != "" {
			card.Ends = q.season.end
		}
		page.Boards, queries = append(page.Boards, card), append(queries, q)
	}
	parts, err := b.readEach(ctx, queries)
	if err != nil {
		return Page{}, err
	}
	for i, p := range parts {
		if page.Boards[i].Count = p.count; len(p.entries) > 0 {
			page.Boards[i].First = &p.entries[0]
		}
	}
	return page, nil
}

// readEach reads parts of boards, at once.
func (b *Boards) readEach(ctx context.Context, queries []query) ([]part, error) {
	parts := make([]part, len(queries))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(kit.DefaultPage)
	for i, q := range queries {
		group.Go(func() (err error) {
			parts[i], err = b.opts.Store.read(ctx, q)
			return err
		})
	}
	return parts, group.Wait()
}

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
	reads := kit.ReadsOf(channelPrefix, names, queue.StateRead{Fields: []string{topField}})
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

const (
	// restoreEvery is the interval of the rounds of Restore.
	restoreEvery = time.Minute
	// restoreBatch is how many versions of cards are read in one round trip.
	restoreBatch = 100
)

// Restore returns a round of a janitor that makes the brokers compute again the cards of boards
// without one: of a board from before the list, and after a failover of the store that has lost
// them. It counts those that it noted.
func Restore(o CheckOptions) task.Round {
	return task.Round{Name: "boards", Every: restoreEvery, Calm: kit.RestoreCalm, Do: func(ctx context.Context) (int, error) {
		missing, err := o.unlisted(ctx)
		if err != nil || len(missing) == 0 {
			return 0, err
		}
		return len(missing), o.Index.Schedule(ctx, 0, missing...)
	}}
}

// CheckList compares the list of boards with those that have players. They differ for about a
// second after the first player of a board, and for up to a minute after the end of its last
// season.
func CheckList(o CheckOptions) task.Check {
	return kit.Check("board list", func(ctx context.Context, f *kit.Findings) error {
		const remedy = "brokers correct it within a minute; if it stays, look at their logs and at the names in kit.boards"
		missing, err := o.unlisted(ctx)
		if err != nil {
			return err
		}
		for _, board := range missing {
			f.Add(channelPrefix+board, remedy, "it has players, but is not in the list of boards")
		}
		names, err := o.Store.names(ctx)
		if err != nil {
			return err
		}
		for cards, err := range index.Pages(ctx, o.Index, index.Query{List: allList}) {
			if err != nil {
				return err
			}
			for _, c := range cards {
				if _, has := slices.BinarySearch(names, c.ID); !has {
					f.Add(channelPrefix+c.ID, remedy, "it is in the list of boards, but has no players")
				}
			}
		}
		return nil
	})
}

// names returns the boards that have a player in any season, in order.
func (r *Redis) names(ctx context.Context) (names []string, err error) {
	parts, err := r.parts(ctx, scoresKey)
	for _, p := range parts {
		names = append(names, p.board)
	}
	return slices.Compact(names), err
}

// unlisted returns the boards that have a player, but no card.
func (o *CheckOptions) unlisted(ctx context.Context) (missing []string, err error) {
	names, err := o.Store.names(ctx)
	if err != nil {
		return nil, err
	}
	for batch := range slices.Chunk(names, restoreBatch) {
		versions, err := o.Index.Versions(ctx, batch...)
		if err != nil {
			return nil, err
		}
		for i, version := range versions {
			if version == 0 {
				missing = append(missing, batch[i])
			}
		}
	}
	return missing, nil
}
