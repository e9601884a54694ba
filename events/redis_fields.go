package events

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"switchboard/internal/redispipe"
)

// ScheduleFields implements [Store]. Shards and concurrent calls share runs of the script, as in
// Schedule.
func (r *Redis) ScheduleFields(ctx context.Context, track bool, checks ...FieldsCheck) []error {
	flag := "0"
	if track {
		flag = "1"
	}
	plain, lines := make([]Check, len(checks)), make([]Check, len(checks))
	for i, c := range checks {
		plain[i], lines[i] = c.Check, Check{c.Shard, decimal(c.At) + " " + c.Entry}
	}
	batches := byShard(lines)
	targets := make([]redispipe.Target, len(batches))
	for i, b := range batches {
		targets[i] = redispipe.Target{
			Script: r.scheduleFields, Keys: []string{r.keys.due(b.shard), r.keys.fields(b.shard)}, Args: []any{flag, b.entries.String()},
		}
	}
	return r.runChecks(ctx, plain, batches, targets)
}

// SettleFields implements [Store].
func (r *Redis) SettleFields(ctx context.Context, shard int, result FieldsResult) (Settled, error) {
	empty, idle := 0, trackIdle.Milliseconds()
	if result.Empty {
		empty = 1
	}
	if result.Untrack {
		idle = -1
	}
	before := decimal(result.Before)
	if result.Record == nil {
		before = ""
	}
	pairs := make([]string, 0, 2*len(result.Events))
	for _, e := range result.Events {
		pairs = append(pairs, e.ID, string(e.Body))
	}
	list, err := json.Marshal(pairs)
	if err != nil {
		return Settled{}, fmt.Errorf("settle %s: %w", result.Entry, err)
	}
	k, l := r.keys, r.limits
	n, err := r.pipe.EvalInt(ctx, settleFieldsScript,
		[]string{k.due(shard), k.fields(shard), k.outbox(shard), k.deadLetters(shard), k.meta(shard)},
		result.Entry, result.Token, before, decimal(result.Reported), empty, result.Next, idle, recheckDelay.Milliseconds(),
		shard, l.outbox, l.outboxBytes, l.deadLetters, l.deadLetterBytes, r.ttl, list)
	if err != nil {
		return Settled{}, fmt.Errorf("settle %s: %w", result.Entry, err)
	}
	return Settled{Valid: n >= 0, Created: n >= 0 && len(result.Events) > 0, DeadLettered: int(max(n, 0))}, nil
}

// TrackedChannels implements [Store]. The cursor is the cursor of HSCAN.
func (r *Redis) TrackedChannels(ctx context.Context, shard int, cursor string, n int) (channels []TrackedChannel, next string, err error) {
	pairs, next, err := r.scanHash(ctx, r.keys.fields(shard), cursor, n)
	for pair := range slices.Chunk(pairs, 2) {
		tracked, parseErr := parseTracked(pair[1])
		if parseErr != nil {
			continue // TrackFields and the next settled claim write it again
		}
		channels = append(channels, TrackedChannel{pair[0], tracked})
	}
	if err != nil {
		return nil, "", fmt.Errorf("tracked channels in shard %d: %w", shard, err)
	}
	return channels, next, nil
}
