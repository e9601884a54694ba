package board

import (
	"context"
	"strconv"

	"switchboard/internal/wire"
	"switchboard/kit"
)

// View is a part of a board.
type View struct {
	Board  string `json:"board"`
	Season string `json:"season,omitempty"` // its id
	Ends   int64  `json:"ends,omitempty"`   // the end of the season, Unix ms
	// Count is the number of players on the board.
	Count   int     `json:"count"`
	Entries []Entry `json:"entries"`          // ordered by rank
	Cursor  string  `json:"cursor,omitempty"` // of the next page of Top, "" for the last one
}

// Standing is the place of a player.
type Standing struct {
	Board  string `json:"board"`
	Season string `json:"season,omitempty"`
	Count  int    `json:"count"`
	Entry
}

// The defaults and the bounds of reads.
const (
	defaultEntries   = topSize
	defaultNeighbors = topSize / 2
	maxOffset        = maxEntries
)

// Top returns the entries after the first offset ones, at most limit, from 1 to kit.MaxPage. A
// limit of 0 means 10. season is "" for the current season, "previous", or an id. The error is
// [wire.NotFound] if there is no such board or season. A season that is no longer kept is empty.
func (b *Boards) Top(ctx context.Context, board, season string, offset, limit int) (View, error) {
	if offset < 0 || offset > maxOffset {
		return View{}, wire.Errorf(wire.BadRequest, "offset: %d is not within 0 and %d", offset, maxOffset)
	}
	if err := kit.LimitOr(&limit, defaultEntries, true); err != nil {
		return View{}, err
	}
	view, err := b.read(ctx, query{board: board, skip: offset, limit: limit}, season)
	if next := offset + len(view.Entries); err == nil && len(view.Entries) > 0 && next < view.Count && next <= maxOffset {
		view.Cursor = strconv.Itoa(next)
	}
	return view, err
}

// offsetOf returns the offset of the page with a cursor. An empty cursor has the offset given.
func offsetOf(cursor string, offset int) (int, error) {
	if cursor == "" {
		return offset, nil
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 0 || n > maxOffset || offset != 0 {
		return 0, wire.BadCursor()
	}
	return n, nil
}

// Around returns a player with up to n neighbors on each side, from 1 to kit.MaxPage. An n of 0
// means 5. The error is [wire.NotFound] if the player is not on the board.
func (b *Boards) Around(ctx context.Context, board, player, season string, n int) (View, error) {
	if err := kit.LimitOr(&n, defaultNeighbors, true); err != nil {
		return View{}, err
	}
	view, err := b.readPlayer(ctx, query{board: board, player: player, skip: n, limit: 2*n + 1}, season)
	if err != nil {
		return View{}, err
	}
	// A player near the top has fewer neighbors before, and not more after.
	for i, e := range view.Entries {
		if e.Player == player {
			view.Entries = view.Entries[:min(len(view.Entries), i+n+1)]
			break
		}
	}
	return view, nil
}

// Rank returns the place of a player. The error is [wire.NotFound] if the player is not on the
// board.
func (b *Boards) Rank(ctx context.Context, board, player, season string) (Standing, error) {
	view, err := b.readPlayer(ctx, query{board: board, player: player, limit: 1}, season)
	if err != nil {
		return Standing{}, err
	}
	return Standing{Board: view.Board, Season: view.Season, Count: view.Count, Entry: view.Entries[0]}, nil
}

func (b *Boards) readPlayer(ctx context.Context, q query, season string) (View, error) {
	if err := wire.CheckName("player", q.player); err != nil {
		return View{}, err
	}
	view, err := b.read(ctx, q, season)
	if err == nil && len(view.Entries) == 0 {
		err = wire.Errorf(wire.NotFound, "player: %s is not on the board", q.player)
	}
	return view, err
}

func (b *Boards) read(ctx context.Context, q query, season string) (View, error) {
	rules, err := b.opts.board(q.board)
	if err != nil {
		return View{}, err
	}
	if q.season, err = rules.find(season, b.opts.now()); err != nil {
		return View{}, err
	}
	q.sign = rules.sign()
	p, err := b.opts.Store.read(ctx, q)
	if err != nil {
		return View{}, err
	}
	view := View{Board: q.board, Season: q.season.id, Count: p.count, Entries: p.entries}
	if view.Season != "" {
		view.Ends = q.season.end
	}
	if view.Entries == nil {
		view.Entries = []Entry{}
	}
	return view, nil
}
