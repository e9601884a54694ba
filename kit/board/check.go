package board

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/state"
	"switchboard/janitor/task"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

var checkScript = redispipe.MustScript(luaFiles, "check")

// CheckOptions are the stores that a check, or a round of a janitor, reads.
type CheckOptions struct {
	Store  *Redis
	States kit.States
	Index  index.Index
}

// Check compares the records of all boards: each entry with the score and the arrival of its
// player, and the field top with the first ten entries. All of them change in one script, so one
// look is enough. It reads every entry, some hundred at once.
func Check(o CheckOptions) task.Check {
	check := kit.Check("boards", func(ctx context.Context, f *kit.Findings) error {
		c := checker{o, f, map[string]bool{}}
		return c.run(ctx)
	})
	check.Apart = 0
	return check
}

// checker is one look of a check.
type checker struct {
	CheckOptions
	*kit.Findings
	unreadable map[string]bool // boards whose entries cannot be read
}

// boardPart names the keys of a board in a season.
type boardPart struct{ board, season string }

func (c *checker) report(p boardPart, remedy, format string, args ...any) {
	c.Add(channelPrefix+p.board, remedy, format, args...)
}

func (c *checker) run(ctx context.Context) error {
	parts, err := c.Store.parts(ctx, scoresKey, playersKey)
	if err != nil {
		return err
	}
	boards := map[string]bool{}
	for _, p := range parts {
		boards[p.board] = true
		if err := c.checkPart(ctx, p); err != nil {
			return fmt.Errorf("board %s: %w", p.board, err)
		}
	}
	for channel, err := range c.States.StateChannels(ctx) {
		if err != nil {
			return err
		}
		if board, found := strings.CutPrefix(channel, channelPrefix); found {
			boards[board] = true
		}
	}
	for _, board := range slices.Sorted(maps.Keys(boards)) {
		if c.unreadable[board] {
			continue
		}
		if err := c.checkTop(ctx, board); err != nil {
			return fmt.Errorf("board %s: %w", board, err)
		}
	}
	return nil
}

// parts returns the boards and seasons that have keys of the kinds, in order.
func (r *Redis) parts(ctx context.Context, kinds ...string) (parts []boardPart, err error) {
	for key, err := range r.pipe.Keys(ctx, redispipe.EscapeGlob(r.keys.prefix)+"lb_*{"+channelPrefix+"*") {
		if err != nil {
			return nil, err
		}
		kind, rest, _ := strings.Cut(key[len(r.keys.prefix):], "{"+channelPrefix)
		if board, season, _ := strings.Cut(rest, "}"); slices.Contains(kinds, kind) {
			parts = append(parts, boardPart{board, strings.TrimPrefix(season, ":")})
		}
	}
	slices.SortFunc(parts, func(a, b boardPart) int {
		return cmp.Or(strings.Compare(a.board, b.board), strings.Compare(a.season, b.season))
	})
	return slices.Compact(parts), nil
}

// checkPage is about how many records a script of a check reads: less than a millisecond of Redis.
const checkPage = 200

// The remedies of damaged records.
const (
	removeEntry  = "remove the member by ZREM, and submit the score of the player again"
	removePlayer = "remove the player from the board by the API, and submit the score again"
)

// checkPart compares the two keys of a board.
func (c *checker) checkPart(ctx context.Context, p boardPart) error {
	s := season{id: p.season}
	keys := []string{c.Store.keys.scores(p.board, s), c.Store.keys.players(p.board, s)}
	for _, what := range []string{"entries", "players"} {
		for cursor := "0"; ; {
			reply, err := c.Store.pipe.Eval(ctx, checkScript, keys, what, cursor, checkPage)
			if redis.HasErrorPrefix(err, "WRONGTYPE") {
				c.unreadable[p.board] = true
				c.report(p, "restore both keys from a backup, or remove them", "%s or %s has the wrong type", keys[0], keys[1])
				return nil
			}
			if err != nil {
				return err
			}
			page, err := parseCheckPage(reply)
			if err != nil {
				return err
			}
			if what == "entries" {
				c.checkEntries(p, keys, page)
			} else {
				c.checkPlayers(p, keys, page)
			}
			if cursor = page.next; cursor == "0" {
				c.checkEnds(p, keys, page)
				break
			}
		}
	}
	return nil
}

// checkPageReply is the reply of check.lua.
type checkPageReply struct {
	next    string
	ends    [2]int64
	arrival string
	records [][3]string
}

func parseCheckPage(reply any) (p checkPageReply, err error) {
	words, _ := reply.([]any)
	if len(words) < 4 {
		return p, fmt.Errorf("unexpected reply of check: %v", reply)
	}
	p.next, _ = words[0].(string)
	p.ends[0], _ = words[1].(int64)
	p.ends[1], _ = words[2].(int64)
	p.arrival, _ = words[3].(string)
	for words = words[4:]; len(words) >= 3; words = words[3:] {
		var record [3]string
		for i := range record {
			record[i], _ = words[i].(string)
		}
		p.records = append(p.records, record)
	}
	return p, nil
}

// checkEntries finds entries that are not those of their player.
func (c *checker) checkEntries(p boardPart, keys []string, page checkPageReply) {
	for _, r := range page.records {
		member, record := r[0], r[2]
		switch _, arrival, _ := strings.Cut(record, " "); {
		case len(member) <= arrivalSize:
			c.unreadable[p.board] = true
			c.report(p, removeEntry, "%s has the malformed member %q", keys[0], member)
		case record == "":
			c.report(p, removeEntry, "%s has the member %s, but %s has no such player", keys[0], member, keys[1])
		case arrival != member[:arrivalSize-1]:
			c.report(p, removeEntry, "%s has the member %s, but %s has another arrival of the player", keys[0], member, keys[1])
		}
	}
}

// checkPlayers finds players whose entry is absent or in another place.
func (c *checker) checkPlayers(p boardPart, keys []string, page checkPageReply) {
	next, err := strconv.ParseInt(page.arrival, 10, 64)
	if err != nil {
		next = 0
	}
	for _, r := range page.records {
		player, record, place := r[0], r[1], r[2]
		score, arrival, _ := strings.Cut(record, " ")
		n, arrivalErr := strconv.ParseInt(arrival, 16, 64)
		if _, err := strconv.ParseInt(score, 10, 64); err != nil || arrivalErr != nil || len(arrival) != arrivalSize-1 {
			c.report(p, "remove the player by HDEL, and submit the score again", "%s has a malformed record of the player %s", keys[1], player)
			continue
		}
		if strings.TrimPrefix(place, "-") != strings.TrimPrefix(score, "-") {
			problem := "in another place than its score"
			if place == "" {
				problem = "absent"
			}
			c.report(p, removePlayer, "%s has the player %s, but the entry in %s is %s", keys[1], player, keys[0], problem)
		}
		if n >= next {
			c.report(p, `raise the field "" above all arrivals, which are hexadecimal`,
				"the next arrival in %s, its field \"\", has been given already", keys[1])
		}
	}
}

// checkEnds finds keys that do not end together. -2 means that there is no key, as after the last
// player was removed.
func (c *checker) checkEnds(p boardPart, keys []string, page checkPageReply) {
	if a, b := page.ends[0], page.ends[1]; a != b && a != -2 && b != -2 {
		c.report(p, "set the TTL of both by PEXPIREAT", "%s and %s do not end at the same time", keys[0], keys[1])
	}
}

// storedTop is the value of the field top.
type storedTop struct {
	Season  string `json:"season"`
	Entries []struct {
		Player string `json:"player"`
		Score  int64  `json:"score"`
	} `json:"entries"`
}

// checkTop compares the field top of a board with its first ten entries. The field changes with
// them, so they belong together if it is the same before and after they are read. A field that
// changes all the time is not compared.
func (c *checker) checkTop(ctx context.Context, board string) error {
	const remedy = "remove the field top; the next submitted score sets it"
	for range maxTries {
		before, err := c.readTop(ctx, board)
		if err != nil {
			return err
		}
		var top storedTop
		malformed := before.ID != 0 && json.Unmarshal(before.Value, &top) != nil
		entries, err := c.Store.read(ctx, query{board: board, season: season{id: top.Season}, sign: 1, limit: topSize})
		if err != nil {
			return err
		}
		after, err := c.readTop(ctx, board)
		if err != nil {
			return err
		}
		if before.ID != after.ID || !bytes.Equal(before.Value, after.Value) {
			continue
		}
		switch {
		case malformed:
			c.report(boardPart{board: board}, remedy, "the field top is malformed")
		case before.ID == 0 && len(entries.entries) > 0: // of a board without seasons
			c.report(boardPart{board: board}, "the next submitted score sets it", "the field top is absent, but the board has players")
		case before.ID != 0 && !top.shows(entries.entries):
			c.report(boardPart{board: board}, remedy, "the field top does not show the first ten entries")
		}
		return nil
	}
	return nil
}

// shows reports whether the field has the entries. Their scores are places.
func (t *storedTop) shows(entries []Entry) bool {
	if len(t.Entries) != len(entries) {
		return false
	}
	ascending, descending := true, true
	for i, e := range t.Entries {
		if e.Player != entries[i].Player {
			return false
		}
		ascending, descending = ascending && e.Score == entries[i].Score, descending && e.Score == -entries[i].Score
	}
	return ascending || descending
}

// readTop returns the field top, or an empty field.
func (c *checker) readTop(ctx context.Context, board string) (state.Field, error) {
	page, err := kit.ReadState(ctx, c.States, queue.StateRead{Channel: channelPrefix + board, Fields: []string{topField}})
	if err != nil || len(page.Fields) == 0 {
		return state.Field{}, err
	}
	return *page.Fields[0].Field, nil
}
