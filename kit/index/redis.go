package index

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/redispipe"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	putScript      = redispipe.MustScript(luaFiles, "put", "reservations")
	getScript      = redispipe.MustScript(luaFiles, "get")
	versionsScript = redispipe.MustScript(luaFiles, "versions")
	listScript     = redispipe.MustScript(luaFiles, "list")
	countScript    = redispipe.MustScript(luaFiles, "count")
	scheduleScript = redispipe.MustScript(luaFiles, "schedule")
	takeScript     = redispipe.MustScript(luaFiles, "take")
	doneScript     = redispipe.MustScript(luaFiles, "done")
	sweepScript    = redispipe.MustScript(luaFiles, "sweep")
	findScript     = &redispipe.BatchScript{Script: redispipe.MustScript(luaFiles, "find", "reservations")}
)

var _ Index = (*Redis)(nil)

// Redis is an [Index] that processes share. Each call is one script in the index's slot.
type Redis struct {
	pipe *redispipe.Pipe
	// The names of the keys. lists and making are prefixes of those of lists.
	cards, due, removed, lists              string
	reserved, reservedEnds, numbers, making string
}

// NewRedis returns the index with a name. prefix is the prefix of all keys.
func NewRedis(pipe *redispipe.Pipe, prefix, name string) *Redis {
	tag := "{" + name + "}"
	return &Redis{
		pipe:  pipe,
		cards: prefix + "ix_" + tag, due: prefix + "ix_d_" + tag, removed: prefix + "ix_t_" + tag, lists: prefix + "ix_l_" + tag + ":",
		reserved: prefix + "ix_p_" + tag, reservedEnds: prefix + "ix_pe_" + tag, numbers: prefix + "ix_pn_" + tag, making: prefix + "ix_pm_" + tag + ":",
	}
}

// Put implements Index.
func (r *Redis) Put(ctx context.Context, cards ...Card) error {
	var args []any
	for i := range cards {
		c := &cards[i]
		if err := c.check(); err != nil {
			return err
		}
		args = append(args, c.ID, c.Version, c.lines(), c.Data)
	}
	keys := []string{r.cards, r.removed, r.lists, r.reserved, r.reservedEnds, r.numbers, r.making}
	_, err := r.pipe.Eval(ctx, putScript, keys, args...)
	return err
}

// lines returns the lists of a card, one line for each: in order, so that equal cards have equal
// records.
func (c *Card) lines() string {
	var lists []string
	for list, score := range c.Lists {
		lists = append(lists, list+" "+strconv.FormatInt(score, 10))
	}
	slices.Sort(lists)
	return strings.Join(lists, "\n")
}

// Get implements Index.
func (r *Redis) Get(ctx context.Context, ids ...string) ([]Card, error) {
	reply, err := r.strings(ctx, getScript, []string{r.cards}, toArgs(ids)...)
	if err != nil {
		return nil, err
	}
	cards := make([]Card, len(ids))
	for i, record := range reply {
		if record == "" {
			continue
		}
		if cards[i], err = parseRecord(ids[i], record); err != nil {
			return nil, err
		}
	}
	return cards, nil
}

// Versions implements Index.
func (r *Redis) Versions(ctx context.Context, ids ...string) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	reply, err := r.strings(ctx, versionsScript, []string{r.cards}, toArgs(ids)...)
	if err != nil {
		return nil, err
	}
	versions := make([]int64, len(ids))
	for i, text := range reply {
		if versions[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("index: the record of %s is malformed", ids[i])
		}
	}
	return versions, nil
}

// parseRecord parses a stored card: the version, the number of lists, one line for each list, and
// the data.
func parseRecord(id, record string) (Card, error) {
	bad := func() (Card, error) { return Card{}, fmt.Errorf("index: the record of %s is malformed", id) }
	c := Card{ID: id, Lists: map[string]int64{}}
	version, rest, _ := strings.Cut(record, "\n")
	lists, rest, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(lists)
	if err != nil {
		return bad()
	}
	if c.Version, err = strconv.ParseInt(version, 10, 64); err != nil {
		return bad()
	}
	for range n {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		list, score, _ := strings.Cut(line, " ")
		if c.Lists[list], err = strconv.ParseInt(score, 10, 64); err != nil {
			return bad()
		}
	}
	c.Data = []byte(rest)
	return c, nil
}

// List implements Index.
func (r *Redis) List(ctx context.Context, q Query) (page Page, err error) {
	q = q.withDefaults()
	from, err := q.from()
	if err != nil {
		return page, err
	}
	score, after, descending := "", "", 0
	if from != nil {
		score, after = strconv.FormatInt(from.score, 10), from.id
	}
	if q.Descending {
		descending = 1
	}
	v, err := r.pipe.Eval(ctx, listScript, []string{r.cards, r.lists}, q.List, q.Min, q.Max, descending, score, after, q.Limit, q.Bytes)
	if err != nil {
		return page, err
	}
	reply, _ := v.([]any)
	for i := 1; i+2 < len(reply); i += 3 {
		id, _ := reply[i].(string)
		score, _ := reply[i+1].(string)
		record, _ := reply[i+2].(string)
		at, err := strconv.ParseFloat(score, 64)
		if err != nil {
			return page, fmt.Errorf("index: list %s: %s has the score %q", q.List, id, score)
		}
		c, err := parseRecord(id, record)
		if err != nil {
			return page, err
		}
		c.Lists = map[string]int64{q.List: int64(at)}
		page.Cards = append(page.Cards, c)
	}
	if len(page.Cards) > 0 && reply[0] == int64(1) {
		page.Next = q.After(page.Cards[len(page.Cards)-1])
	}
	return page, nil
}

// Count implements Index.
func (r *Redis) Count(ctx context.Context, lists ...string) ([]int, error) {
	reply, err := r.pipe.Eval(ctx, countScript, []string{r.lists}, toArgs(lists)...)
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	counts := make([]int, len(lists))
	for i := range min(len(list), len(counts)) {
		n, _ := list[i].(int64)
		counts[i] = int(n)
	}
	return counts, nil
}

// Schedule implements Index.
func (r *Redis) Schedule(ctx context.Context, in time.Duration, ids ...string) error {
	_, err := r.pipe.Eval(ctx, scheduleScript, []string{r.due}, append([]any{in.Milliseconds()}, toArgs(ids)...)...)
	return err
}

// Take implements Index.
func (r *Redis) Take(ctx context.Context, n int, lease time.Duration) ([]Task, error) {
	reply, err := r.strings(ctx, takeScript, []string{r.due}, n, lease.Milliseconds())
	if err != nil || len(reply) == 0 {
		return nil, err
	}
	end, err := strconv.ParseInt(reply[0], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("index: unexpected reply of take: %q", reply[0])
	}
	var tasks []Task
	for _, id := range reply[1:] {
		tasks = append(tasks, Task{id, end})
	}
	return tasks, nil
}

// Done implements Index.
func (r *Redis) Done(ctx context.Context, next map[Task]time.Duration) error {
	if len(next) == 0 {
		return nil
	}
	args := make([]any, 0, 3*len(next))
	for t, in := range next {
		args = append(args, t.ID, t.lease, in.Milliseconds())
	}
	_, err := r.pipe.Eval(ctx, doneScript, []string{r.due}, args...)
	return err
}

// Find implements Index. Calls at the same time share a run of the script.
func (r *Redis) Find(ctx context.Context, s Search) (Found, error) {
	if err := s.check(); err != nil {
		return Found{}, err
	}
	answer := r.pipe.EvalEach(ctx, redispipe.Target{
		Script: findScript, Keys: []string{r.lists, r.due, r.reserved, r.reservedEnds, r.numbers, r.making},
		Args: []any{
			s.List, s.Taker, strings.Join(s.Not, " "), s.New, s.Places, strings.Join(s.Lists, " "), s.Due.Milliseconds(), s.Lease.Milliseconds(),
		},
	})[0]
	if answer.Err != nil {
		return Found{}, answer.Err
	}
	words, _ := answer.Value.([]any)
	if len(words) != 3 {
		return Found{}, fmt.Errorf("index: unexpected reply of find: %v", answer.Value)
	}
	var f Found
	f.ID, _ = words[0].(string)
	f.Made, _ = words[1].(string)
	f.First = words[2] == int64(1)
	return f, nil
}

// Sweep implements Index.
func (r *Redis) Sweep(ctx context.Context, n int) error {
	_, err := r.pipe.Eval(ctx, sweepScript, []string{r.cards, r.removed}, TombstoneAge.Milliseconds(), n)
	return err
}

// strings runs a script that returns a list of texts.
func (r *Redis) strings(ctx context.Context, script *redispipe.Script, keys []string, args ...any) ([]string, error) {
	reply, err := r.pipe.Eval(ctx, script, keys, args...)
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("index: unexpected reply of a script: %T, want a list", reply)
	}
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i], _ = v.(string)
	}
	return texts, nil
}

func toArgs(list []string) []any {
	args := make([]any, len(list))
	for i, text := range list {
		args[i] = text
	}
	return args
}
