package board

import (
	"context"
	"embed"
	"fmt"
	"strconv"

	"switchboard/internal/redispipe"
	"switchboard/queue"
)

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
