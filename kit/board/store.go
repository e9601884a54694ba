package board

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/redispipe"
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

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	changeScript = queue.NewStateScript(luaFiles, "change")
	readScript   = redispipe.MustScript(luaFiles, "read")
)

var _ Store = (*Redis)(nil)

// Redis is a [Store] next to a [queue.Redis].
type Redis struct {
	pipe *redispipe.Pipe
	keys keys
}

// NewRedis returns the store in Redis. prefix begins all keys, like that of the queue.
func NewRedis(pipe *redispipe.Pipe, prefix string) *Redis { return &Redis{pipe, keys{prefix}} }

// The beginnings of the keys of a board.
const (
	scoresKey  = "lb_"
	playersKey = "lb_p_"
)

// keys builds the keys; doc.go describes them.
type keys struct{ prefix string }

func (k keys) scores(board string, s season) string { return k.name(scoresKey, board, s) }

func (k keys) players(board string, s season) string { return k.name(playersKey, board, s) }

func (k keys) operation(board, player, id string) string {
	return k.prefix + "lb_o_{" + channelPrefix + board + "}:" + player + " " + id
}

func (k keys) name(kind, board string, s season) string {
	name := k.prefix + kind + "{" + channelPrefix + board + "}"
	if s.id != "" {
		name += ":" + s.id
	}
	return name
}

func (r *Redis) change(c change) *queue.ScriptCall {
	return &queue.ScriptCall{
		Script: changeScript,
		Keys: []string{
			r.keys.scores(c.board, c.season), r.keys.players(c.board, c.season), r.keys.operation(c.board, c.player, c.operation),
		},
		Arg: c.arg(),
	}
}

func (r *Redis) read(ctx context.Context, q query) (part, error) {
	keys := []string{r.keys.scores(q.board, q.season), r.keys.players(q.board, q.season)}
	reply, err := r.pipe.Eval(ctx, readScript, keys, q.player, q.skip, q.limit)
	if err != nil {
		return part{}, err
	}
	words, _ := reply.([]any)
	if len(words) < 2 {
		return part{}, fmt.Errorf("board: unexpected reply of read: %v", reply)
	}
	count, _ := words[0].(int64)
	before, _ := words[1].(int64)
	p := part{count: int(count), before: int(before)}
	for words = words[2:]; len(words) >= 2; words = words[2:] {
		member, _ := words[0].(string)
		text, _ := words[1].(string)
		place, err := strconv.ParseFloat(text, 64)
		if err != nil || len(member) <= arrivalSize {
			return part{}, fmt.Errorf("board: malformed entry %q with the score %q", member, text)
		}
		p.entries = append(p.entries, Entry{p.before + len(p.entries) + 1, member[arrivalSize:], int64(place) * q.sign})
	}
	return p, nil
}

// arrivalSize is the size of the arrival at the beginning of a member, with the colon.
const arrivalSize = 13
