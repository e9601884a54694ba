package backend

import (
	"context"
	"net/http"
	"net/url"

	"switchboard/client/board"
)

// Boards are the leaderboards of a broker, see docs/boards.md. The errors of all calls are an
// [*Error].
type Boards struct{ *Client }

// Score is a score of a player.
type Score struct {
	Player string `json:"player"`
	Score  int64  `json:"score"`
	Mode   string `json:"mode,omitempty"` // best, set or add. Zero means that of the board
	Key    string `json:"key,omitempty"`  // with the same Key, a score counts once
	// Deprecated: Operation is the former name of Key.
	Operation string `json:"operation,omitempty"`
	Season    string `json:"season,omitempty"` // the only season in which it counts
	Durable   bool   `json:"durable,omitempty"`
}

// BoardQuery selects a part of a board.
type BoardQuery struct {
	Season string // "previous" or an id. Zero means the current one
	Offset int    // of Top: how many entries it leaves out
	Cursor string // of Top, instead of Offset: that of the page before
	Limit  int    // 1 to 1000. Zero means 10, or 5 neighbors on each side
}

// BoardPage is a page of boards, in the order of their names.
type BoardPage struct {
	Boards []board.Card `json:"boards"`
	Cursor string       `json:"cursor,omitempty"` // of the next page, "" for the last one
}

func boardPath(name, rest string) string { return "/v1/boards/" + url.PathEscape(name) + rest }

func playerPath(name, player, rest string) string {
	return boardPath(name, "/players/"+url.PathEscape(player)+rest)
}

func (q BoardQuery) values() url.Values {
	return values("season", q.Season, "offset", number(q.Offset), "cursor", q.Cursor, "limit", number(q.Limit))
}

// List returns a page of the boards that have a player.
func (b Boards) List(ctx context.Context, p PageQuery) (BoardPage, error) {
	return get[BoardPage](ctx, b.Client, "/v1/boards", p.values())
}

// Submit submits a score. A submission with a Key can be repeated.
func (b Boards) Submit(ctx context.Context, name string, s Score) (r board.Result, err error) {
	err = b.Call(ctx, Request{Method: http.MethodPost, Path: boardPath(name, "/scores"), Body: s}, &r)
	return r, err
}

// Remove removes a player from a season, "" for the current one.
func (b Boards) Remove(ctx context.Context, name, player, season string) (r board.Result, err error) {
	err = b.Call(ctx, Request{Method: http.MethodDelete, Path: playerPath(name, player, ""), Query: values("season", season)}, &r)
	return r, err
}

// Top returns the first entries of a board.
func (b Boards) Top(ctx context.Context, name string, q BoardQuery) (board.View, error) {
	return get[board.View](ctx, b.Client, boardPath(name, ""), q.values())
}

// Around returns a player with the neighbors. The code of the error is client.NotFound if the
// player is not on the board.
func (b Boards) Around(ctx context.Context, name, player string, q BoardQuery) (board.View, error) {
	return get[board.View](ctx, b.Client, playerPath(name, player, "/around"), q.values())
}

// Rank returns the place of a player. Its error is like that of Around.
func (b Boards) Rank(ctx context.Context, name, player, season string) (board.Standing, error) {
	return get[board.Standing](ctx, b.Client, playerPath(name, player, ""), values("season", season))
}
