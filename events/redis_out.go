package events

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Take implements [Store].
func (r *Redis) Take(ctx context.Context, shard, n int, lease time.Duration) (Batch, error) {
	list, err := r.array(ctx, takeScript, []string{r.keys.out(shard), r.keys.meta(shard)},
		n, maxPageBytes, millis(lease), r.ttl)
	b := Batch{Shard: shard}
	if err == nil && len(list) > 0 {
		err = b.read(list)
	}
	if err != nil {
		return Batch{}, fmt.Errorf("take events of shard %d: %w", shard, err)
	}
	return b, nil
}

// read takes {fence, attempts, {event…}}.
func (b *Batch) read(list []any) error {
	if len(list) != 3 {
		return errReply
	}
	fence, ok1 := list[0].(int64)
	attempts, ok2 := list[1].(int64)
	events, ok3 := list[2].([]any)
	if !ok1 || !ok2 || !ok3 {
		return errReply
	}
	b.Fence, b.Attempts = fence, int(attempts)
	for _, element := range texts(events) {
		q, err := parseQueued(element)
		if err != nil {
			return err
		}
		b.Events = append(b.Events, q)
	}
	return nil
}

// parseQueued reads <place>:<event>.
func parseQueued(element string) (Queued, error) {
	digits, event, found := strings.Cut(element, ":")
	place, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil {
		return Queued{}, errReply
	}
	return Queued{Place: place, Event: []byte(event)}, nil
}

// Sent implements [Store].
func (r *Redis) Sent(ctx context.Context, b Batch, to int64, keep time.Duration) error {
	n, err := r.eval(ctx, sentScript, []string{r.keys.out(b.Shard), r.keys.meta(b.Shard)},
		decimal(b.Fence), decimal(to), millis(keep))
	return fenced(b, n, err)
}

// Failed implements [Store].
func (r *Redis) Failed(ctx context.Context, b Batch, to int64, again, maxAge time.Duration) (int, error) {
	n, err := r.giveUp(ctx, b, to, millis(maxAge), Expired, millis(again), 0)
	return int(max(n, 0)), fenced(b, n, err)
}

// Refused implements [Store].
func (r *Redis) Refused(ctx context.Context, b Batch, to int64, why Reason, keep time.Duration) error {
	n, err := r.giveUp(ctx, b, to, -1, why, -1, millis(keep))
	return fenced(b, n, err)
}

func (r *Redis) giveUp(ctx context.Context, b Batch, to, age int64, why Reason, again, keep int64) (int64, error) {
	k := r.keys
	return r.eval(ctx, giveupScript, []string{k.out(b.Shard), k.dead(b.Shard), k.meta(b.Shard)},
		decimal(b.Fence), decimal(to), age, string(why), again, keep, r.bounds.dead, r.bounds.deadBytes, r.ttl)
}

func fenced(b Batch, n int64, err error) error {
	if err == nil && n < 0 {
		err = ErrFenced
	}
	if err != nil {
		return fmt.Errorf("end a delivery of shard %d: %w", b.Shard, err)
	}
	return nil
}

// Dead implements [Store].
func (r *Redis) Dead(ctx context.Context, shard, from, n int) ([]DeadLetter, error) {
	cmd := redis.NewStringSliceCmd(ctx, "lrange", r.keys.dead(shard), from, from+n-1)
	err := r.pipe.Do(ctx, cmd)
	letters := make([]DeadLetter, len(cmd.Val()))
	for i, element := range cmd.Val() {
		if err == nil {
			letters[i], err = parseLetter(element)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("dead letters of shard %d: %w", shard, err)
	}
	return letters, nil
}

// parseLetter reads <reason>:<Unix ms>:<event>.
func parseLetter(element string) (DeadLetter, error) {
	why, rest, _ := strings.Cut(element, ":")
	digits, event, found := strings.Cut(rest, ":")
	ms, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil {
		return DeadLetter{}, errReply
	}
	return DeadLetter{Reason: Reason(why), At: time.UnixMilli(ms), Event: []byte(event)}, nil
}

// Retry implements [Store].
func (r *Redis) Retry(ctx context.Context, shard, n int) (int, error) {
	k := r.keys
	moved, err := r.eval(ctx, retryScript, []string{k.out(shard), k.dead(shard), k.meta(shard)},
		n, r.bounds.out, r.bounds.outBytes, r.ttl)
	if err != nil {
		return 0, fmt.Errorf("retry dead letters of shard %d: %w", shard, err)
	}
	return int(moved), nil
}
