// Package replay reads the log of a channel and replays its changes, for tests that compare what
// clients have received with what the store has applied. It shares no code with the store except
// for the encoding of entries and the fold of package state.
package replay

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/state"
)

// epochMS is the time of id 0 in Unix milliseconds. An id is the store's clock since then, in
// milliseconds, times idsPerMS, and at least one above the last id.
const (
	epochMS  = 1577836800000
	idsPerMS = 4096
)

// Time returns the time on the store's clock at which an id was assigned.
func Time(id int64) time.Time { return time.UnixMilli(epochMS + id/idsPerMS) }

// An Entry is one entry of a log.
type Entry struct {
	ID      int64
	Prev    int64        // id of the entry before, 0 for none
	Data    []byte       // as it is stored
	Changes *state.Entry // nil for a message without changes, or a marker
}

// Append appends an entry to a log.
func Append(log []Entry, id int64, data []byte) ([]Entry, error) {
	e := Entry{ID: id, Data: data}
	if len(log) > 0 {
		e.Prev = log[len(log)-1].ID
	}
	var err error
	if state.IsEntry(data) {
		e.Changes, err = state.DecodeEntry(data)
	}
	if err != nil {
		err = fmt.Errorf("entry %d: %w", id, err)
	}
	return append(log, e), err
}

// Redis reads the log of a channel from a Redis without a key prefix, in the order of ids.
func Redis(ctx context.Context, client redis.Cmdable, channel string) (log []Entry, err error) {
	members, err := client.ZRange(ctx, "mq_ch_{"+channel+"}", 0, -1).Result()
	for i := 0; err == nil && i < len(members); i++ {
		number, data, _ := strings.Cut(members[i], ":")
		var id int64
		if id, err = strconv.ParseInt(number, 10, 64); err == nil {
			log, err = Append(log, id, []byte(data))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", channel, err)
	}
	return log, nil
}

// Each calls step for each entry of a log from its begin, with the fields before the entry and
// after it.
func Each(log []Entry, step func(e Entry, before, after map[string]state.Shown)) {
	fold := state.NewMap(0)
	for _, e := range log {
		before := maps.Clone(fold.Fields)
		if e.Changes != nil {
			fold.Apply(e.ID, e.Changes)
		}
		step(e, before, fold.Fields)
	}
}
