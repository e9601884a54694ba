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
	list, err := r.evalArray(ctx, takeScript, []string{r.keys.outbox(shard), r.keys.meta(shard)},
		n, maxBatchBytes, millis(lease), r.ttl)
	b := Batch{Shard: shard}
	if err == nil && len(list) > 0 {
		err = b.parse(list)
	}
	if err != nil {
		return Batch{}, fmt.Errorf("take events of shard %d: %w", shard, err)
	}
	return b, nil
}

// parse reads the reply of take.lua: {fencing token, failed attempts, {event…}}.
func (b *Batch) parse(list []any) error {
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
	for _, element := range toStrings(events) {
		q, err := parseQueuedEvent(element)
		if err != nil {
			return err
		}
		b.Events = append(b.Events, q)
	}
	return nil
}

// parseQueuedEvent parses <seq>:<event>.
func parseQueuedEvent(element string) (QueuedEvent, error) {
	digits, event, found := strings.Cut(element, ":")
	seq, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil {
		return QueuedEvent{}, errReply
	}
	return QueuedEvent{Seq: seq, Event: []byte(event)}, nil
}

// Sent implements [Store].
func (r *Redis) Sent(ctx context.Context, b Batch, upTo int64, renew time.Duration) error {
	n, err := r.evalInt(ctx, sentScript, []string{r.keys.outbox(b.Shard), r.keys.meta(b.Shard)},
		decimal(b.Fence), decimal(upTo), millis(renew), b.Answer.text())
	return fenceError(b, n, err)
}

// Failed implements [Store].
func (r *Redis) Failed(ctx context.Context, b Batch, upTo int64, retryIn, maxAge time.Duration) (int, error) {
	n, err := r.deadLetter(ctx, b, upTo, millis(maxAge), Expired, millis(retryIn), 0)
	return int(max(n, 0)), fenceError(b, n, err)
}

// Refused implements [Store].
func (r *Redis) Refused(ctx context.Context, b Batch, upTo int64, why Reason, renew time.Duration) error {
	n, err := r.deadLetter(ctx, b, upTo, -1, why, -1, millis(renew))
	return fenceError(b, n, err)
}

// deadLetter runs dead_letter.lua. Its header describes the arguments and the result.
func (r *Redis) deadLetter(ctx context.Context, b Batch, upTo, minAge int64, why Reason, retryIn, renew int64) (int64, error) {
	k := r.keys
	return r.evalInt(ctx, deadLetterScript, []string{k.outbox(b.Shard), k.deadLetters(b.Shard), k.meta(b.Shard)},
		decimal(b.Fence), decimal(upTo), minAge, string(why), retryIn, renew, r.limits.deadLetters, r.limits.deadLetterBytes, r.ttl,
		b.Answer.text())
}

// fenceError returns the error for a reply, which is -1 if the caller no longer holds the lease.
func fenceError(b Batch, n int64, err error) error {
	if err == nil && n < 0 {
		err = ErrFenced
	}
	if err != nil {
		return fmt.Errorf("finish a delivery of shard %d: %w", b.Shard, err)
	}
	return nil
}

// DeadLetters implements [Store].
func (r *Redis) DeadLetters(ctx context.Context, shard, skip, n int) ([]DeadLetter, error) {
	cmd := redis.NewStringSliceCmd(ctx, "lrange", r.keys.deadLetters(shard), skip, skip+n-1)
	err := r.pipe.Do(ctx, cmd)
	letters := make([]DeadLetter, len(cmd.Val()))
	for i, element := range cmd.Val() {
		if err == nil {
			letters[i], err = parseDeadLetter(element)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("dead letters of shard %d: %w", shard, err)
	}
	return letters, nil
}

// parseDeadLetter parses <reason>:<Unix ms>:<event>.
func parseDeadLetter(element string) (DeadLetter, error) {
	why, rest, _ := strings.Cut(element, ":")
	digits, event, found := strings.Cut(rest, ":")
	ms, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil {
		return DeadLetter{}, errReply
	}
	return DeadLetter{Reason: Reason(why), At: time.UnixMilli(ms), Event: []byte(event)}, nil
}

// Requeue implements [Store].
func (r *Redis) Requeue(ctx context.Context, shard, n int) (int, error) {
	k := r.keys
	moved, err := r.evalInt(ctx, requeueScript, []string{k.outbox(shard), k.deadLetters(shard), k.meta(shard)},
		n, r.limits.outbox, r.limits.outboxBytes, r.ttl)
	if err != nil {
		return 0, fmt.Errorf("requeue dead letters of shard %d: %w", shard, err)
	}
	return int(moved), nil
}

// Letter implements [Store].
func (r *Redis) Letter(ctx context.Context, shard int, id string, retry bool) (bool, error) {
	k, again := r.keys, 0
	if retry {
		again = 1
	}
	n, err := r.evalInt(ctx, takeLetterScript, []string{k.outbox(shard), k.deadLetters(shard), k.meta(shard)},
		id, again, r.limits.outbox, r.limits.outboxBytes, r.ttl)
	if err == nil && n < 0 {
		err = ErrFull
	}
	if err != nil {
		return false, fmt.Errorf("dead letter %.60q of shard %d: %w", id, shard, err)
	}
	return n == 1, nil
}

// Backlog implements [Store].
func (r *Redis) Backlog(ctx context.Context, shard int) (Backlog, error) {
	k := r.keys
	list, err := r.evalArray(ctx, backlogScript, []string{k.outbox(shard), k.deadLetters(shard), k.meta(shard)})
	var b Backlog
	if err == nil {
		b, err = parseBacklog(list)
	}
	if err != nil {
		return Backlog{}, fmt.Errorf("backlog of shard %d: %w", shard, err)
	}
	return b, nil
}

// parseBacklog parses the reply of backlog.lua.
func parseBacklog(list []any) (Backlog, error) {
	if len(list) != 7 {
		return Backlog{}, errReply
	}
	var numbers [6]int64
	for i := range numbers {
		n, ok := list[i].(int64)
		if !ok {
			return Backlog{}, errReply
		}
		numbers[i] = n
	}
	text, _ := list[6].(string)
	answer, err := parseAnswer(text)
	b := Backlog{
		Waiting: int(numbers[0]), Dead: int(numbers[1]), Dropped: numbers[2], Oldest: timeOf(numbers[3]),
		Attempts: int(numbers[4]), Answer: answer,
	}
	if numbers[5] > 0 {
		b.RetryAt = time.UnixMilli(numbers[5])
	}
	return b, err
}
