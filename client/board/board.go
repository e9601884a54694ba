// Package board reads leaderboards, and submits scores to boards that allow it. The field top of
// the channel of a board has its first ten: subscribe to [Channel] with State to see them change.
package board

import (
	"context"

	"switchboard/client"
)

// Boards are the boards of the broker of a client.
type Boards struct{ *client.Client }

// Channel returns the channel of a board. Its field [TopField] is a [Top].
func Channel(board string) string { return "board:" + board }

// TopField is the field with the first ten. It is absent without players.
const TopField = "top"

// Top is the value of [TopField].
type Top struct {
	Season  string  `json:"season,omitempty"`
	Entries []Entry `json:"entries"` // ordered; the field has no ranks
}

// Request selects a part of a board.
type Request struct {
	Board string `json:"board"`
	// Season is "previous" or the id of a season. Zero means the current one.
	Season string `json:"season,omitempty"`
	// Player is the player of Around and Rank. Zero means the user of the client.
	Player string `json:"player,omitempty"`
	// Offset is how many entries Top leaves out.
	Offset int `json:"offset,omitempty"`
	// Cursor of Top, instead of Offset, is that of the page before.
	Cursor string `json:"cursor,omitempty"`
	// Limit is the most entries of Top, or the most neighbors of Around on each side, up to 100. Zero
	// means 10 and 5.
	Limit int `json:"limit,omitempty"`
}

// Top reads the first entries of a board.
func (b Boards) Top(ctx context.Context, r Request) (v View, err error) {
	err = b.Call(ctx, "board.top", r, &v)
	return v, err
}

// Around reads a player with the neighbors. The error is a [client.Error] with client.NotFound if
// the player is not on the board.
func (b Boards) Around(ctx context.Context, r Request) (v View, err error) {
	err = b.Call(ctx, "board.around", r, &v)
	return v, err
}

// Rank reads the place of a player. Its error is like that of Around.
func (b Boards) Rank(ctx context.Context, r Request) (s Standing, err error) {
	err = b.Call(ctx, "board.rank", r, &s)
	return s, err
}

// Submit submits a score, if the board allows it.
func (b Boards) Submit(ctx context.Context, s Submission) (r Result, err error) {
	err = b.Call(ctx, "board.submit", s, &r)
	return r, err
}
