package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

var errReply = errors.New("unexpected reply of a script")

// maxChecksPerRun limits the entries of a shard in one run of the script, because Redis serves no
// other call during a run.
const maxChecksPerRun = 256

// checkBatch holds checks of one shard, which one run of the script schedules.
type checkBatch struct {
	shard   int
	indexes []int           // positions of the checks in the caller's list
	entries strings.Builder // one per line
}

// Schedule implements [Store]. Without a Redis Cluster, all shards and concurrent calls share runs
// of the script. If 256 clients bind at once, each with a channel, their checks take two runs
// instead of 512. In a Cluster they take one run per shard.
func (r *Redis) Schedule(ctx context.Context, grace time.Duration, checks ...Check) []error {
	batches := byShard(checks)
	targets := make([]redispipe.Target, len(batches))
	for i, b := range batches {
		targets[i] = redispipe.Target{
			Script: r.schedule, Keys: []string{r.keys.due(b.shard), r.keys.reported(b.shard)}, Args: []any{millis(grace), b.entries.String()},
		}
	}
	return r.runChecks(ctx, checks, batches, targets)
}

// runChecks runs a script for each batch of checks. The script returns a digit for each check: 1,
// or 0 if there was no room.
func (r *Redis) runChecks(ctx context.Context, checks []Check, batches []*checkBatch, targets []redispipe.Target) []error {
	errs := make([]error, len(checks))
	for i, reply := range r.pipe.EvalEach(ctx, targets...) {
		digits, _ := reply.Value.(string)
		err := reply.Err
		if err == nil && len(digits) != len(batches[i].indexes) {
			err = errReply
		}
		for k, index := range batches[i].indexes {
			scheduled := int64(1)
			if err == nil && digits[k] == '0' {
				scheduled = 0
			}
			errs[index] = scheduleError(checks[index].Entry, scheduled, err)
		}
	}
	return errs
}

// byShard groups checks into batches. Names have no newline.
func byShard(checks []Check) (batches []*checkBatch) {
	var last [Shards]*checkBatch
	for i, c := range checks {
		b := last[c.Shard]
		if b == nil || len(b.indexes) == maxChecksPerRun {
			b = &checkBatch{shard: c.Shard}
			last[c.Shard], batches = b, append(batches, b)
		} else {
			b.entries.WriteByte('\n')
		}
		b.indexes = append(b.indexes, i)
		b.entries.WriteString(c.Entry)
	}
	return batches
}

// SetDeadline implements [Store].
func (r *Redis) SetDeadline(ctx context.Context, shard int, entry string, record []byte, in time.Duration) error {
	scheduled, err := r.pipe.EvalInt(ctx, setDeadlineScript, []string{r.keys.due(shard), r.keys.deadlines(shard), r.keys.meta(shard)},
		entry, record, millis(in), r.limits.due, r.limits.deadlineBytes, r.ttl)
	return scheduleError(entry, scheduled, err)
}

// scheduleError returns the error for a reply: 0 if there was no room, else 1.
func scheduleError(entry string, scheduled int64, err error) error {
	if err == nil && scheduled == 0 {
		err = ErrFull
	}
	if err != nil {
		return fmt.Errorf("schedule a check of %s: %w", entry, err)
	}
	return nil
}

// Claim implements [Store].
func (r *Redis) Claim(ctx context.Context, shard, n int, ttl time.Duration) ([]Claim, error) {
	reply, err := r.pipe.EvalArray(ctx, claimScript, []string{r.keys.due(shard), r.keys.deadlines(shard), r.keys.fields(shard)}, n, millis(ttl))
	var claims []Claim
	for err == nil && reply.Len() > 0 {
		claim := Claim{Entry: reply.Text(), Token: reply.Text()}
		if record := reply.Text(); record != "" {
			claim.Record = []byte(record)
		}
		claims, err = append(claims, claim), reply.Err
	}
	if err != nil {
		return nil, fmt.Errorf("claim in shard %d: %w", shard, err)
	}
	return claims, nil
}

// Settle implements [Store].
func (r *Redis) Settle(ctx context.Context, shard int, result CheckResult) (Settled, error) {
	present := 0
	if result.Present {
		present = 1
	}
	k, l := r.keys, r.limits
	n, err := r.pipe.EvalInt(ctx, settleScript,
		[]string{k.due(shard), k.reported(shard), k.deadlines(shard), k.outbox(shard), k.deadLetters(shard), k.meta(shard)},
		result.Entry, result.Token, present, result.Event, result.ID, shard,
		l.outbox, l.outboxBytes, l.deadLetters, l.deadLetterBytes, r.ttl)
	if err != nil {
		return Settled{}, fmt.Errorf("settle %s: %w", result.Entry, err)
	}
	return Settled{Valid: n >= 0, Created: n > 0, DeadLettered: int(max(n-1, 0))}, nil
}

// ReportedPresent implements [Store]. The cursor is the cursor of HSCAN.
func (r *Redis) ReportedPresent(ctx context.Context, shard int, cursor string, n int) (entries []string, next string, err error) {
	entries, next, err = r.scanReported(ctx, shard, cursor, n)
	if err != nil {
		return nil, "", fmt.Errorf("entries reported present in shard %d: %w", shard, err)
	}
	return entries, next, nil
}

func (r *Redis) scanReported(ctx context.Context, shard int, cursor string, n int) (entries []string, next string, err error) {
	pairs, next, err := r.scanHash(ctx, r.keys.reported(shard), cursor, n)
	for pair := range slices.Chunk(pairs, 2) {
		entries = append(entries, pair[0])
	}
	return entries, next, err
}

// scanHash returns a page of the fields and values of a hash. After the last page it renews the
// TTL, so that an entry may stay for longer than Retention.
func (r *Redis) scanHash(ctx context.Context, key, cursor string, n int) (pairs []string, next string, err error) {
	var position uint64
	if cursor != "" {
		if position, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, "", err
		}
	}
	scan := redis.NewScanCmd(ctx, nil, "hscan", key, position, "count", n)
	if err := r.pipe.Do(ctx, scan); err != nil {
		return nil, "", err
	}
	pairs, position = scan.Val()
	if position > 0 {
		return pairs, strconv.FormatUint(position, 10), nil
	}
	return pairs, "", r.pipe.Do(ctx, redis.NewBoolCmd(ctx, "pexpire", key, r.ttl))
}
