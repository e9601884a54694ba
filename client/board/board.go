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

// Entry is a player on a board.
type Entry struct {
	Rank   int    `json:"rank,omitempty"` // from 1
	Player string `json:"player"`
	Score  int64  `json:"score"`
}

// View is a part of a board.
type View struct {
	Board   string  `json:"board"`
	Season  string  `json:"season,omitempty"` // the id of the season, "" on a board without seasons
	Ends    int64   `json:"ends,omitempty"`   // the end of the season, Unix ms
	Count   int     `json:"count"`            // of players on the board
	Entries []Entry `json:"entries"`          // ordered by rank
	Cursor  string  `json:"cursor,omitempty"` // of the next page of Top, "" for the last one
}

// Card is a board in the list of boards.
type Card struct {
	Board  string `json:"board"`
	Order  string `json:"order"` // desc, or asc if the lowest score is first
	Mode   string `json:"mode"`  // what a submitted score does: best, set or add
	Season string `json:"season,omitempty"`
	Ends   int64  `json:"ends,omitempty"`  // the end of the season, Unix ms
	Count  int    `json:"count"`           // of players in the season
	First  *Entry `json:"first,omitempty"` // nil without players
}

// Standing is the place of a player.
type Standing struct {
	Board  string `json:"board"`
	Season string `json:"season,omitempty"`
	Count  int    `json:"count"`
	Entry
}

// Result is the result of a submission.
type Result struct {
	Board  string `json:"board"`
	Season string `json:"season,omitempty"` // in which the score counted, also of a repeat after its end
	Player string `json:"player"`
	// Score is the player's score now, and Previous the one before. Nil means none: a full board has
	// no place for the last one.
	Score    *int64 `json:"score"`
	Previous *int64 `json:"previous"`
	Rank     int    `json:"rank,omitempty"` // from 1; 0 means none
	Count    int    `json:"count"`
	Repeated bool   `json:"repeated,omitempty"` // the operation was known
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

// Submission is a score of the user of the client.
type Submission struct {
	Board string `json:"board"`
	Score int64  `json:"score"`
	// Key identifies the submission: a repeat changes nothing. A board that adds scores needs it.
	Key string `json:"key,omitempty"`
	// Deprecated: Operation is the former name of Key.
	Operation string `json:"operation,omitempty"`
	// Season is the only season in which the score counts. Zero means any.
	Season string `json:"season,omitempty"`
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
