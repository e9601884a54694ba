package board

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"switchboard/broker/extension"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/budget"
	"switchboard/queue"
)

// channelPrefix begins the channels of boards.
const channelPrefix = "board:"

// topField is the field of the channel with the first ten:
// {"season":"20260601T000000Z","entries":[{"player":"amy","score":1500}]}. A board without seasons
// has no season. The field is absent until the first score, and ends with the season.
const topField = "top"

// Boards are the boards of a broker.
type Boards struct {
	host    *extension.Host
	opts    Options
	results kit.Results
	cards   *kit.Cards // of the list of boards
	budget  *budget.Budget
	known   *known
}

// NewBoards returns the boards of a broker. [New] also makes their extension.
func NewBoards(host *extension.Host, opts Options) (*Boards, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Boards{host: host, opts: opts, results: kit.NewResults("switchboard_boards_total", "Changes of boards")}
	b.cards = &kit.Cards{Index: opts.Index, Lease: opts.Rounds, All: allList, Compute: b.computeCards}
	b.budget, b.known = b.newBudget(), new(known)
	return b, nil
}

// Score is a score that is submitted.
type Score struct {
	Board  string `json:"board"`
	Player string `json:"player" required:"true"`
	// Score is between -(2^53-1) and 2^53-1. JSON keeps such numbers exactly.
	Score int64 `json:"score" required:"true"`
	// Mode says what the score does. Zero means the board's mode.
	Mode Mode `json:"mode,omitempty"`
	// Key identifies the submission of the player for Options.OperationTTL: a repeat changes nothing
	// and has the first result. It has 1 to 200 bytes without white space. Add needs one.
	Key string `json:"key,omitempty"`
	// Operation is the former name of Key.
	Operation string `json:"operation,omitempty"`
	// Season is the id of the season in which the score counts: the error is [wire.Expired] if it is
	// not the current one. Zero means the season that is current when the score arrives.
	Season string `json:"season,omitempty"`
	// Durable waits until a replica has the score. Without one the error is queue.ErrNotReplicated,
	// and the result is valid.
	Durable bool `json:"durable,omitempty"`
}

// Result is the result of a submission or a removal.
type Result struct {
	Board  string `json:"board"`
	Season string `json:"season,omitempty"` // the id of the season in which the change counted
	Player string `json:"player"`
	// Score is the player's score after the change, and Previous the one before it. Nil means that the
	// player is not on the board: a full board has no place for the last one.
	Score    *int64 `json:"score"`
	Previous *int64 `json:"previous"`
	// Rank is the place of the player, from 1. Zero means none.
	Rank int `json:"rank,omitempty"`
	// Count is the number of players on the board.
	Count int `json:"count"`
	// Repeated reports that the operation was known: the result is that of the first time.
	Repeated bool `json:"repeated,omitempty"`
}

// Submit submits a score. Besides the errors of the store, the errors are [wire.BadRequest],
// [wire.NotFound] for a board or a season that does not exist, [wire.Expired], and
// [wire.OutOfRange] if the sum of an Add is out of bounds.
func (b *Boards) Submit(ctx context.Context, s Score) (_ Result, err error) {
	defer b.results.Count("submit", &err)
	rules, err := b.opts.board(s.Board)
	if err != nil {
		return Result{}, err
	}
	key, err := kit.FormerName("key", s.Key, "operation", s.Operation)
	if err != nil {
		return Result{}, err
	}
	c := change{what: s.Mode, score: s.Score, player: s.Player, operation: key, board: s.Board}
	if c.what == "" {
		c.what = rules.Mode
	}
	if err := c.what.check(); err != nil {
		return Result{}, err
	}
	switch {
	case c.score > state.MaxNumber || c.score < -state.MaxNumber:
		return Result{}, wire.Errorf(wire.BadRequest, "score: %d is not within -(2^53-1) and 2^53-1", c.score)
	case s.Key != "":
		err = wire.CheckName("key", s.Key)
	case s.Operation != "":
		err = wire.CheckName("operation", s.Operation)
	case c.what == Add:
		err = wire.Errorf(wire.BadRequest, "key: an addition needs one, so that a repeat adds once (its former name is operation)")
	}
	if err != nil {
		return Result{}, err
	}
	return b.change(ctx, rules, c, s.Season, s.Durable)
}

// Remove removes a player from a board, now or in a kept season. Removing an absent player changes
// nothing.
func (b *Boards) Remove(ctx context.Context, board, player, season string) (_ Result, err error) {
	rules, err := b.opts.board(board)
	if err != nil {
		return Result{}, err
	}
	defer b.results.Count("remove", &err)
	return b.change(ctx, rules, change{what: remove, player: player, board: board, anySeason: season != ""}, season, false)
}

// maxTries bounds how often a change looks for the season.
const maxTries = 3

// change makes a change in the named season, or in the current one.
func (b *Boards) change(ctx context.Context, rules *Board, c change, id string, durable bool) (Result, error) {
	if err := wire.CheckName("player", c.player); err != nil {
		return Result{}, err
	}
	c.entries, c.sign, c.remember = rules.Entries, rules.sign(), b.opts.OperationTTL
	now := b.opts.now()
	for try := 1; ; try++ {
		var err error
		if c.season, err = rules.find(id, now); err != nil {
			return Result{}, err
		}
		if rules.Life > 0 {
			c.season.forget = now.Add(rules.Life).UnixMilli()
		}
		result, err := b.changeOnce(ctx, c, durable)
		refusal, refused := errors.AsType[*state.Refusal](err)
		if !refused && result.Count <= 1 { // also after an error: the change may be stored
			b.cards.Note(c.board)
		}
		switch {
		case !refused:
			return result, err
		case refusal.Field == conditionRange:
			return Result{}, wire.Errorf(wire.OutOfRange, "score: the sum is not within -(2^53-1) and 2^53-1")
		case refusal.Field != conditionExpired:
			return Result{}, err
		case id != "":
			return Result{}, wire.Errorf(wire.Expired, "season: %s is not the current season", c.season.id)
		case try == maxTries:
			return Result{}, wire.Errorf(wire.Unavailable, "season: it ends while the score arrives")
		}
		if now, err = b.storeTime(ctx, c.board); err != nil {
			return Result{}, err
		}
	}
}

// changeOnce makes a change in c.season.
func (b *Boards) changeOnce(ctx context.Context, c change, durable bool) (Result, error) {
	u := &state.Update{
		Ops:    []state.Op{{Field: topField, Kind: state.Set, Value: []byte("null")}}, // the script sets the value
		Writer: state.BackendHolder,
	}
	done, err := b.host.Change(ctx, channelPrefix+c.board, u, extension.ChangeOptions{Durable: durable, Script: b.opts.Store.change(c)})
	if err != nil && !errors.Is(err, queue.ErrNotReplicated) {
		return Result{}, err
	}
	result := Result{Board: c.board, Season: c.season.id, Player: c.player}
	if parseErr := result.parse(done.Reply); parseErr != nil {
		return Result{}, parseErr
	}
	return result, err
}

// parse parses the reply of change.lua. The season stays as it is if the reply does not name it: an
// earlier release has stored the operation.
func (r *Result) parse(reply string) error {
	words := strings.Fields(reply)
	if n := len(words); n > 4 && words[n-1] == "again" {
		r.Repeated, words = true, words[:n-1]
	}
	if len(words) < 4 {
		return fmt.Errorf("board: unexpected reply of a change: %q", reply)
	}
	var errs [4]error
	r.Score, errs[0] = parseScore(words[0])
	r.Previous, errs[1] = parseScore(words[1])
	r.Rank, errs[2] = strconv.Atoi(words[2])
	r.Count, errs[3] = strconv.Atoi(words[3])
	if len(words) > 4 && words[4] != noSeason {
		r.Season = words[4]
	}
	return errors.Join(errs[:]...)
}

func parseScore(word string) (*int64, error) {
	if word == "-" {
		return nil, nil
	}
	n, err := strconv.ParseInt(word, 10, 64)
	return &n, err
}

// storeTime returns the time of the store, which decides which season is the current one.
func (b *Boards) storeTime(ctx context.Context, board string) (time.Time, error) {
	read := b.host.ReadStates(ctx, []queue.StateRead{{Channel: channelPrefix + board, Fields: []string{topField}}})[0]
	return time.UnixMilli(read.Value.Clock), read.Err
}
