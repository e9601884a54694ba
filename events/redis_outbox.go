package events

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// Take implements [Store].
func (r *Redis) Take(ctx context.Context, shard, n int, lease time.Duration) (Batch, error) {
	reply, err := r.pipe.EvalArray(ctx, takeScript, []string{r.keys.outbox(shard), r.keys.meta(shard)},
		n, maxBatchBytes, millis(lease), r.ttl)
	b := Batch{Shard: shard}
	if err == nil && reply.Len() > 0 {
		err = b.parse(reply)
	}
	if err != nil {
		return Batch{}, fmt.Errorf("take events of shard %d: %w", shard, err)
	}
	return b, nil
}

// parse reads the reply of take.lua: {fencing token, failed attempts, {event…}}.
func (b *Batch) parse(reply *redispipe.Reply) error {
	b.Fence, b.Attempts = reply.Int(), int(reply.Int())
	for _, element := range reply.Texts() {
		q, err := parseQueuedEvent(element)
		if err != nil {
			return err
		}
		b.Events = append(b.Events, q)
	}
	return reply.Err
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
	n, err := r.pipe.EvalInt(ctx, sentScript, []string{r.keys.outbox(b.Shard), r.keys.meta(b.Shard)},
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
	return r.pipe.EvalInt(ctx, deadLetterScript, []string{k.outbox(b.Shard), k.deadLetters(b.Shard), k.meta(b.Shard)},
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
	moved, err := r.pipe.EvalInt(ctx, requeueScript, []string{k.outbox(shard), k.deadLetters(shard), k.meta(shard)},
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
	n, err := r.pipe.EvalInt(ctx, takeLetterScript, []string{k.outbox(shard), k.deadLetters(shard), k.meta(shard)},
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
	reply, err := r.pipe.EvalArray(ctx, backlogScript, []string{k.outbox(shard), k.deadLetters(shard), k.meta(shard)})
	var b Backlog
	if err == nil {
		b, err = parseBacklog(reply)
	}
	if err != nil {
		return Backlog{}, fmt.Errorf("backlog of shard %d: %w", shard, err)
	}
	return b, nil
}

// parseBacklog parses the reply of backlog.lua.
func parseBacklog(reply *redispipe.Reply) (b Backlog, err error) {
	b = Backlog{
		Waiting: int(reply.Int()), Dead: int(reply.Int()), Dropped: reply.Int(), Oldest: timeOf(reply.Int()), Attempts: int(reply.Int()),
	}
	if at := reply.Int(); at > 0 {
		b.RetryAt = time.UnixMilli(at)
	}
	b.Answer, err = parseAnswer(reply.Text())
	return b, cmp.Or(reply.Err, err)
}
