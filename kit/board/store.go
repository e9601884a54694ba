package board

import (
	"context"
	"strconv"
	"strings"
	"time"

	"switchboard/queue"
)

// Store holds the scores of boards. [Redis] and [Memory] implement it. They order, count and refuse
// alike.
type Store interface {
	// change returns what makes the update of the board's channel.
	change(change) *queue.ScriptCall
	read(context.Context, query) (part, error)
}

// topSize is how many players the field top has.
const topSize = 10

// change is a change of one player.
type change struct {
	board  string
	season season
	what   Mode // or remove
	score  int64
	player string

	entries   int           // most players
	sign      int64         // see Board.sign
	operation string        // the id, or ""
	remember  time.Duration // how long the operation is known
	anySeason bool          // the season need not be the current one
}

// remove is a change.what that removes the player.
const remove Mode = "remove"

// The conditions of a refused change: no field has their names.
const (
	conditionExpired = "$expired"
	conditionRange   = "$range"
)

// arg returns the argument of change.lua.
func (c *change) arg() string {
	remember, anySeason := int64(0), "0"
	if c.operation != "" {
		remember = c.remember.Milliseconds()
	}
	if c.anySeason {
		anySeason = "1"
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return strings.Join([]string{
		string(c.what), number(c.score), c.player, c.season.word(), number(c.season.start), number(c.season.end),
		number(c.season.forget), strconv.Itoa(c.entries), number(c.sign), number(remember), anySeason,
	}, " ")
}

// query selects a part of a board.
type query struct {
	board  string
	season season
	sign   int64
	// player is "", or the part begins skip places before the player.
	player      string
	skip, limit int
}

// part is a part of a board.
type part struct {
	count   int // of players on the board
	before  int // players before the part, or -1 if the player of the query is not on the board
	entries []Entry
}

// Entry is a player on a board.
type Entry struct {
	Rank   int    `json:"rank"` // from 1
	Player string `json:"player"`
	Score  int64  `json:"score"`
}
