package board

import (
	"bytes"
	"context"
	"encoding/json"

	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// A submission is the data of the method board.submit. The player is the user of the client, and
// the mode is that of the board.
type submission struct {
	Board     string `json:"board"`
	Score     int64  `json:"score"`
	Operation string `json:"operation"`
	Season    string `json:"season"`
}

func (b *Boards) submitMethod(ctx context.Context, c session.Caller, data json.RawMessage) (any, error) {
	var s submission
	if err := decode(data, &s); err != nil {
		return nil, err
	}
	rules, err := b.opts.board(s.Board)
	if err != nil {
		return nil, err
	}
	if !rules.Submit || c.User == "" {
		return nil, wire.Errorf(wire.Forbidden, "board %s: clients may not submit scores", s.Board)
	}
	return b.Submit(ctx, Score{Board: s.Board, Player: c.User, Score: s.Score, Operation: s.Operation, Season: s.Season})
}

// A request is the data of a method that reads. Player is the user of the client if it is absent.
type request struct {
	Board  string `json:"board"`
	Season string `json:"season"`
	Player string `json:"player"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

// decodeRead decodes a request of a caller that may read the board.
func (b *Boards) decodeRead(c session.Caller, data json.RawMessage) (r request, err error) {
	if err := decode(data, &r); err != nil {
		return r, err
	}
	if r.Player == "" {
		r.Player = c.User
	}
	return r, b.mayRead(r.Board, c.User)
}

func (b *Boards) topMethod(ctx context.Context, c session.Caller, data json.RawMessage) (any, error) {
	r, err := b.decodeRead(c, data)
	if err != nil {
		return nil, err
	}
	return b.Top(ctx, r.Board, r.Season, r.Offset, r.Limit)
}

func (b *Boards) aroundMethod(ctx context.Context, c session.Caller, data json.RawMessage) (any, error) {
	r, err := b.decodeRead(c, data)
	if err != nil {
		return nil, err
	}
	return b.Around(ctx, r.Board, r.Player, r.Season, r.Limit)
}

func (b *Boards) rankMethod(ctx context.Context, c session.Caller, data json.RawMessage) (any, error) {
	r, err := b.decodeRead(c, data)
	if err != nil {
		return nil, err
	}
	return b.Rank(ctx, r.Board, r.Player, r.Season)
}

// decode decodes the data of a method. Unknown members are errors.
func decode(data json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return wire.Errorf(wire.BadRequest, "data: %v", err)
	}
	return nil
}
