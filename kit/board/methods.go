package board

import (
	"cmp"
	"context"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// A submission is the data of the method board.submit. The player is the user of the client, and
// the mode is that of the board.
type submission struct {
	Board     string `json:"board" required:"true"`
	Score     int64  `json:"score" required:"true"`
	Key       string `json:"key"`
	Operation string `json:"operation"` // the former name of Key
	Season    string `json:"season"`
}

func (b *Boards) submitMethod(ctx context.Context, c session.Caller, s submission) (any, error) {
	rules, err := b.opts.board(s.Board)
	if err != nil {
		return nil, err
	}
	if !rules.Submit || c.User == "" {
		return nil, wire.Errorf(wire.Forbidden, "board %s: clients may not submit scores", s.Board)
	}
	if err := b.charge(ctx, rules, s.Board, c.User); err != nil {
		return nil, err
	}
	return b.Submit(ctx, Score{Board: s.Board, Player: c.User, Score: s.Score, Key: s.Key, Operation: s.Operation, Season: s.Season})
}

// seasonOfBoard is the part of all requests of methods that read.
type seasonOfBoard struct {
	Board  string `json:"board" required:"true"`
	Season string `json:"season"`
}

func (b *Boards) topMethod(ctx context.Context, c session.Caller, r struct {
	seasonOfBoard
	Offset int    `json:"offset"`
	Cursor string `json:"cursor"`
	Limit  int    `json:"limit"`
}) (any, error) {
	offset, err := offsetOf(r.Cursor, r.Offset)
	if err == nil {
		err = kit.LimitOr(&r.Limit, defaultEntries, false)
	}
	if err == nil {
		err = b.mayRead(r.Board, c.User)
	}
	if err != nil {
		return nil, err
	}
	return b.Top(ctx, r.Board, r.Season, offset, r.Limit)
}

// placeOfPlayer is a player on a board, by default the user of the client.
type placeOfPlayer struct {
	seasonOfBoard
	Player string `json:"player"`
}

func (b *Boards) aroundMethod(ctx context.Context, c session.Caller, r struct {
	placeOfPlayer
	Limit int `json:"limit"`
}) (any, error) {
	if err := kit.LimitOr(&r.Limit, defaultNeighbors, false); err != nil {
		return nil, err
	}
	if err := b.mayRead(r.Board, c.User); err != nil {
		return nil, err
	}
	return b.Around(ctx, r.Board, cmp.Or(r.Player, c.User), r.Season, r.Limit)
}

func (b *Boards) rankMethod(ctx context.Context, c session.Caller, r placeOfPlayer) (any, error) {
	if err := b.mayRead(r.Board, c.User); err != nil {
		return nil, err
	}
	return b.Rank(ctx, r.Board, cmp.Or(r.Player, c.User), r.Season)
}
