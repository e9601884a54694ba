// Package heartbeat records in Redis which janitors run, and when each of their rounds was last
// complete. Brokers show it to operators.
//
// The hash j_list holds a description for each janitor. A janitor renews it every few seconds, and
// removes it when it ends. So the description of a janitor that was killed stays, with the time of
// its last report, for 24 hours.
package heartbeat

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// keep is how long the description of a janitor stays after its last report.
const keep = 24 * time.Hour

//go:embed lua/*.lua
var luaFiles embed.FS

var reportScript = redispipe.MustScript(luaFiles, "report")

// Janitor describes a janitor.
type Janitor struct {
	ID        string    `json:"-"`
	Seen      time.Time `json:"-"` // of its last report, on the store's clock; set by the store
	Version   string    `json:"version,omitempty"`
	StartedAt int64     `json:"started_at"` // Unix ms, on its own clock
	// Webhooks reports whether it sends events.
	Webhooks bool `json:"webhooks,omitempty"`
	// Once reports whether it makes one round of each kind and ends, as cron starts it.
	Once bool `json:"once,omitempty"`
	// Rounds are its rounds by their names.
	Rounds map[string]Round `json:"rounds,omitempty"`
}

// Round describes the rounds of one kind. All durations are in milliseconds.
type Round struct {
	Every  int64 `json:"every"`            // the interval
	Idle   int64 `json:"idle"`             // since the last complete round, or since the start
	Took   int64 `json:"took,omitempty"`   // of the last complete round
	Failed int   `json:"failed,omitempty"` // incomplete rounds since the last complete one
}

// Redis stores the descriptions. It is safe for concurrent use.
type Redis struct {
	pipe *redispipe.Pipe
	key  string
}

// NewRedis returns a store over pipe. prefix begins the key.
func NewRedis(pipe *redispipe.Pipe, prefix string) *Redis { return &Redis{pipe, prefix + "j_list"} }

// Report stores the description of a janitor in place of its former one.
func (r *Redis) Report(ctx context.Context, j Janitor) error {
	text, err := json.Marshal(j)
	if err == nil {
		_, err = r.pipe.Eval(ctx, reportScript, []string{r.key}, j.ID, text, keep.Milliseconds())
	}
	if err != nil {
		return fmt.Errorf("report of janitor %s: %w", j.ID, err)
	}
	return nil
}

// Remove removes the description of a janitor.
func (r *Redis) Remove(ctx context.Context, id string) error {
	if err := r.pipe.Do(ctx, redis.NewIntCmd(ctx, "hdel", r.key, id)); err != nil {
		return fmt.Errorf("end of janitor %s: %w", id, err)
	}
	return nil
}

// List returns the janitors that have reported in the last 24 h, the latest report first.
func (r *Redis) List(ctx context.Context) ([]Janitor, error) {
	cmd := redis.NewMapStringStringCmd(ctx, "hgetall", r.key)
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return nil, fmt.Errorf("janitors: %w", err)
	}
	var list []Janitor
	var errs []error
	for id, text := range cmd.Val() {
		j, err := parse(id, text)
		if err != nil {
			errs = append(errs, fmt.Errorf("janitor %s: %w", id, err))
			continue
		}
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b Janitor) int { return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(a.ID, b.ID)) })
	return list, errors.Join(errs...)
}

// parse parses <Unix ms> <description>.
func parse(id, text string) (Janitor, error) {
	at, description, found := strings.Cut(text, " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if !found || err != nil {
		return Janitor{}, errors.New("the description has no time")
	}
	j := Janitor{ID: id, Seen: time.UnixMilli(ms).UTC()}
	if err := json.Unmarshal([]byte(description), &j); err != nil {
		return Janitor{}, err
	}
	return j, nil
}
