package board

import (
	"context"

	"golang.org/x/sync/errgroup"

	"switchboard/kit"
	"switchboard/kit/index"
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
