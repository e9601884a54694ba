package board

import (
	"context"

	"switchboard/internal/wire"
)

// View is a part of a board.
type View struct {
	Board  string `json:"board"`
	Season string `json:"season,omitempty"` // its id
	Ends   int64  `json:"ends,omitempty"`   // the end of the season, Unix ms
	// Count is the number of players on the board.
	Count   int     `json:"count"`
	Entries []Entry `json:"entries"` // ordered by rank
}

// Standing is the place of a player.
type Standing struct {
	Board  string `json:"board"`
	Season string `json:"season,omitempty"`
	Count  int    `json:"count"`
	Entry
}

// The bounds of a read.
const (
	maxLimit     = 100
	defaultLimit = topSize
	maxAround    = 50
	maxOffset    = maxEntries
)

// Top returns the entries after the first offset ones, at most limit. A limit of 0 means 10; the
// highest is 100. season is "" for the current season, "previous", or an id. The error is
// [wire.NotFound] if there is no such board or season. A season that is no longer kept is empty.
func (b *Boards) Top(ctx context.Context, board, season string, offset, limit int) (View, error) {
	if offset < 0 || offset > maxOffset || limit < 0 || limit > maxLimit {
		return View{}, wire.Errorf(wire.BadRequest, "offset must be within 0 and %d, limit within 1 and %d", maxOffset, maxLimit)
	}
	if limit == 0 {
		limit = defaultLimit
	}
	return b.read(ctx, query{board: board, skip: offset, limit: limit}, season)
}

// Around returns a player with up to n neighbors on each side. An n of 0 means 5; the highest is
// 50. The error is [wire.NotFound] if the player is not on the board.
func (b *Boards) Around(ctx context.Context, board, player, season string, n int) (View, error) {
	if n < 0 || n > maxAround {
		return View{}, wire.Errorf(wire.BadRequest, "limit must be within 1 and %d", maxAround)
	}
	if n == 0 {
		n = defaultLimit / 2
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
