package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"switchboard/webhook"
)

const (
	// leaseMargin is how much longer a lease lasts than a delivery, for the calls to the store.
	leaseMargin = 5 * time.Second
	// firstRetryDelay doubles with each failed attempt, up to maxRetryDelay. Each delay is randomly up
	// to half shorter or longer.
	firstRetryDelay = time.Second
	maxRetryDelay   = 5 * time.Minute
)

// SendRound sends the events in all outboxes. It stops at an outbox when the outbox is empty or an
// attempt fails.
func (d *Dispatcher) SendRound(ctx context.Context) (Report, error) {
	d.sendMu.Lock()
	defer d.sendMu.Unlock()
	report, err := eachShard(ctx, d.send)
	d.count(report)
	if ctx.Err() != nil {
		return report, ctx.Err()
	}
	if err != nil {
		return report, fmt.Errorf("send: %w", err)
	}
	return report, nil
}

func (d *Dispatcher) lease() time.Duration { return d.opts.Sender.Timeout() + leaseMargin }

// send sends the events of one shard.
func (d *Dispatcher) send(ctx context.Context, shard int) (report Report, err error) {
	for ctx.Err() == nil {
		b, err := d.opts.Store.Take(ctx, shard, d.opts.Batch, d.lease())
		if err != nil || len(b.Events) == 0 {
			return report, err
		}
		if err := d.deliver(ctx, b, &report); err != nil {
			return report, err
		}
	}
	return report, ctx.Err()
}

// deliver sends a batch and removes it from the outbox. If the error is nil, the caller can try the
// next batch.
func (d *Dispatcher) deliver(ctx context.Context, b Batch, report *Report) error {
	err := d.opts.Sender.Send(ctx, payloads(b.Events))
	b.Answer = answerTo(err)
	last := b.Events[len(b.Events)-1].Seq
	refusal, refused := errors.AsType[*webhook.Refusal](err)
	switch {
	case err == nil:
		report.Sent += len(b.Events)
		return d.opts.Store.Sent(ctx, b, last, 0)
	case refused && refusal.Gone():
		report.DeadLettered += len(b.Events)
		return d.opts.Store.Refused(ctx, b, last, Gone, 0)
	case refused && refusal.Content():
		return d.sendOneByOne(ctx, b, report)
	}
	return d.attemptFailed(ctx, b, last, err, report)
}

// sendOneByOne sends each event of a refused batch alone, and moves only those that the endpoint
// refuses again to the dead letters.
func (d *Dispatcher) sendOneByOne(ctx context.Context, b Batch, report *Report) error {
	if len(b.Events) == 1 {
		report.DeadLettered++
		return d.opts.Store.Refused(ctx, b, b.Events[0].Seq, Refused, 0)
	}
	// Renew the lease without removing events.
	if err := d.opts.Store.Sent(ctx, b, 0, d.lease()); err != nil {
		return err
	}
	for i, event := range b.Events {
		renew := d.lease()
		if i == len(b.Events)-1 {
			renew = 0
		}
		err := d.opts.Sender.Send(ctx, payloads(b.Events[i:i+1]))
		b.Answer = answerTo(err)
		refusal, refused := errors.AsType[*webhook.Refusal](err)
		switch {
		case err == nil:
			report.Sent++
			err = d.opts.Store.Sent(ctx, b, event.Seq, renew)
		case refused && (refusal.Content() || refusal.Gone()):
			report.DeadLettered++
			err = d.opts.Store.Refused(ctx, b, event.Seq, Refused, renew)
		default:
			err = d.attemptFailed(ctx, b, event.Seq, err, report)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// attemptFailed records a failed attempt, schedules the next one, and returns the cause. If the
// round's context has ended, the attempt does not count as failed, and only the lease is released.
func (d *Dispatcher) attemptFailed(ctx context.Context, b Batch, upTo int64, cause error, report *Report) error {
	if ctx.Err() != nil {
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		b.Answer = Answer{} // the end of the round is no answer
		return errors.Join(ctx.Err(), d.opts.Store.Sent(release, b, 0, 0))
	}
	report.Failed++
	retryIn := retryDelay(b.Attempts)
	if refusal, ok := errors.AsType[*webhook.Refusal](cause); ok {
		retryIn = max(retryIn, refusal.RetryAfter)
	}
	expired, err := d.opts.Store.Failed(ctx, b, upTo, retryIn, d.opts.MaxAge)
	report.DeadLettered += expired
	return errors.Join(cause, err)
}

// retryDelay returns the delay before the next attempt, given the number of failed attempts before
// the current one. The store counts them, because another process may make the next attempt.
func retryDelay(attempts int) time.Duration {
	b := &backoff.ExponentialBackOff{
		InitialInterval: firstRetryDelay, Multiplier: 2, RandomizationFactor: 0.5, MaxInterval: maxRetryDelay,
	}
	b.Reset()
	d := b.NextBackOff()
	for range min(attempts, 32) { // after 32 the delay no longer grows
		d = b.NextBackOff()
	}
	return d
}

func payloads(events []QueuedEvent) [][]byte {
	out := make([][]byte, len(events))
	for i, e := range events {
		out[i] = e.Event
	}
	return out
}
