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

// maxNoted is the most entries of a shard in one run of the script: others wait for Redis
// meanwhile.
const maxNoted = 256

// shardChanges is the changes in one shard that go together.
type shardChanges struct {
	shard   int
	of      []int // their places in the caller's list
	entries strings.Builder
}

// Changed implements [Store]. Without a Cluster those of all shards, and of concurrent calls, share
// a run of the script. Of 256 clients that bind at once, each with a channel, the notes are two
// runs instead of 512, and in a Cluster one for each shard.
func (r *Redis) Changed(ctx context.Context, grace time.Duration, changes ...Change) []error {
	batches := byShard(changes)
	targets := make([]redispipe.Target, len(batches))
	for i, b := range batches {
		targets[i] = redispipe.Target{
			Group: r.changed, Keys: []string{r.keys.due(b.shard), r.keys.told(b.shard)}, Args: []any{millis(grace), b.entries.String()},
		}
	}
	errs := make([]error, len(changes))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		digits, _ := answer.Value.(string)
		err := answer.Err
		if err == nil && len(digits) != len(batches[i].of) {
			err = errReply
		}
		for k, at := range batches[i].of {
			room := int64(1)
			if err == nil && digits[k] == '0' {
				room = 0
			}
			errs[at] = noted(changes[at].Entry, room, err)
		}
	}
	return errs
}

// byShard groups changes. No name has a newline.
func byShard(changes []Change) (batches []*shardChanges) {
	var open [Shards]*shardChanges
	for i, c := range changes {
		b := open[c.Shard]
		if b == nil || len(b.of) == maxNoted {
			b = &shardChanges{shard: c.Shard}
			open[c.Shard], batches = b, append(batches, b)
		} else {
			b.entries.WriteByte('\n')
		}
		b.of = append(b.of, i)
		b.entries.WriteString(c.Entry)
	}
	return batches
}

// Watch implements [Store].
func (r *Redis) Watch(ctx context.Context, shard int, entry string, record []byte, after time.Duration) error {
	room, err := r.eval(ctx, watchScript, []string{r.keys.due(shard), r.keys.watch(shard), r.keys.meta(shard)},
		entry, record, millis(after), r.bounds.due, r.bounds.watchBytes, r.ttl)
	return noted(entry, room, err)
}

func noted(entry string, room int64, err error) error {
	if err == nil && room == 0 {
		err = ErrFull
	}
	if err != nil {
		return fmt.Errorf("note %s: %w", entry, err)
	}
	return nil
}

// Claim implements [Store].
func (r *Redis) Claim(ctx context.Context, shard, n int, hold time.Duration) ([]Claim, error) {
	list, err := r.array(ctx, claimScript, []string{r.keys.due(shard), r.keys.watch(shard)}, n, millis(hold))
	flat := texts(list)
	if err == nil && (len(list) != len(flat) || len(flat)%3 != 0) {
		err = errReply
	}
	if err != nil {
		return nil, fmt.Errorf("claim in shard %d: %w", shard, err)
	}
	var claims []Claim
	for c := range slices.Chunk(flat, 3) {
		claim := Claim{Entry: c[0], Token: c[1]}
		if c[2] != "" {
			claim.Record = []byte(c[2])
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// Settle implements [Store].
func (r *Redis) Settle(ctx context.Context, shard int, v Verdict) (Settled, error) {
	present := 0
	if v.Present {
		present = 1
	}
	k, b := r.keys, r.bounds
	result, err := r.eval(ctx, settleScript,
		[]string{k.due(shard), k.told(shard), k.watch(shard), k.out(shard), k.dead(shard), k.meta(shard)},
		v.Entry, v.Token, present, v.Event, v.ID, shard, b.out, b.outBytes, b.dead, b.deadBytes, r.ttl)
	if err != nil {
		return Settled{}, fmt.Errorf("settle %s: %w", v.Entry, err)
	}
	return Settled{Valid: result >= 0, Told: result > 0, GivenUp: int(max(result-1, 0))}, nil
}

// Told implements [Store]. The cursor is that of HSCAN.
func (r *Redis) Told(ctx context.Context, shard int, cursor string, n int) (entries []string, next string, err error) {
	entries, next, err = r.scan(ctx, shard, cursor, n)
	if err != nil {
		return nil, "", fmt.Errorf("who is told present in shard %d: %w", shard, err)
	}
	return entries, next, nil
}

func (r *Redis) scan(ctx context.Context, shard int, cursor string, n int) ([]string, string, error) {
	var position uint64
	if cursor != "" {
		var err error
		if position, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, "", err
		}
	}
	key := r.keys.told(shard)
	scan := redis.NewScanCmd(ctx, nil, "hscan", key, position, "count", n)
	if err := r.pipe.Do(ctx, scan); err != nil {
		return nil, "", err
	}
	pairs, position := scan.Val()
	var entries []string
	for pair := range slices.Chunk(pairs, 2) {
		entries = append(entries, pair[0])
	}
	if position > 0 {
		return entries, strconv.FormatUint(position, 10), nil
	}
	// Who is present for longer than the retention is told so still.
	return entries, "", r.pipe.Do(ctx, redis.NewBoolCmd(ctx, "pexpire", key, r.ttl))
}
