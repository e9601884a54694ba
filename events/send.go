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
	// spare is how much longer a lease lasts than a delivery may take, for the store's answers.
	spare = 5 * time.Second
	// firstWait doubles until lastWait between attempts, each half longer or shorter by chance.
	firstWait = time.Second
	lastWait  = 5 * time.Minute
)

// SendRound sends everything that is not sent, until there is nothing left or an attempt fails.
func (d *Dispatcher) SendRound(ctx context.Context) (Report, error) {
	d.sending.Lock()
	defer d.sending.Unlock()
	did, err := eachShard(ctx, d.send)
	d.count(did)
	if ctx.Err() != nil {
		return did, ctx.Err()
	}
	if err != nil {
		return did, fmt.Errorf("send: %w", err)
	}
	return did, nil
}

func (d *Dispatcher) lease() time.Duration { return d.opts.Sender.Timeout() + spare }

// send delivers from the head of one list.
func (d *Dispatcher) send(ctx context.Context, shard int) (did Report, err error) {
	for ctx.Err() == nil {
		b, err := d.opts.Store.Take(ctx, shard, d.opts.Batch, d.lease())
		if err != nil || len(b.Events) == 0 {
			return did, err
		}
		if err := d.deliver(ctx, b, &did); err != nil {
			return did, err
		}
	}
	return did, ctx.Err()
}

// deliver sends a batch and takes it off the list. The error is nil when the next one may be tried.
func (d *Dispatcher) deliver(ctx context.Context, b Batch, did *Report) error {
	err := d.opts.Sender.Send(ctx, bodies(b.Events))
	last := b.Events[len(b.Events)-1].Place
	refusal, refused := errors.AsType[*webhook.Refusal](err)
	switch {
	case err == nil:
		did.Sent += len(b.Events)
		return d.opts.Store.Sent(ctx, b, last, 0)
	case refused && refusal.Gone():
		did.Dead += len(b.Events)
		return d.opts.Store.Refused(ctx, b, last, Gone, 0)
	case refused && refusal.Content():
		return d.oneByOne(ctx, b, did)
	}
	return d.failed(ctx, b, last, err, did)
}

// oneByOne finds what the endpoint refuses, and gives up that alone.
func (d *Dispatcher) oneByOne(ctx context.Context, b Batch, did *Report) error {
	if len(b.Events) == 1 {
		did.Dead++
		return d.opts.Store.Refused(ctx, b, b.Events[0].Place, Refused, 0)
	}
	if err := d.opts.Store.Sent(ctx, b, 0, d.lease()); err != nil { // only the lease, for the next delivery
		return err
	}
	for i, event := range b.Events {
		keep := d.lease()
		if i == len(b.Events)-1 {
			keep = 0
		}
		err := d.opts.Sender.Send(ctx, bodies(b.Events[i:i+1]))
		refusal, refused := errors.AsType[*webhook.Refusal](err)
		switch {
		case err == nil:
			did.Sent++
			err = d.opts.Store.Sent(ctx, b, event.Place, keep)
		case refused && (refusal.Content() || refusal.Gone()):
			did.Dead++
			err = d.opts.Store.Refused(ctx, b, event.Place, Refused, keep)
		default:
			err = d.failed(ctx, b, event.Place, err, did)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// failed notes when to try again, and returns why it failed. A round that is told to end has not failed: it
// only gives the lease back.
func (d *Dispatcher) failed(ctx context.Context, b Batch, to int64, why error, did *Report) error {
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return errors.Join(ctx.Err(), d.opts.Store.Sent(late, b, 0, 0))
	}
	did.Failed++
	again := wait(b.Attempts)
	if refusal, ok := errors.AsType[*webhook.Refusal](why); ok {
		again = max(again, refusal.RetryAfter)
	}
	expired, err := d.opts.Store.Failed(ctx, b, to, again, d.opts.MaxAge)
	did.Dead += expired
	return errors.Join(why, err)
}

// wait is how long to wait behind an attempt, after so many that failed before it. They are counted in the store,
// since the next attempt may be another process'.
func wait(attempts int) time.Duration {
	b := &backoff.ExponentialBackOff{
		InitialInterval: firstWait, Multiplier: 2, RandomizationFactor: 0.5, MaxInterval: lastWait,
	}
	b.Reset()
	d := b.NextBackOff()
	for range min(attempts, 32) { // behind which it grows no more
		d = b.NextBackOff()
	}
	return d
}

func bodies(events []Queued) [][]byte {
	out := make([][]byte, len(events))
	for i, e := range events {
		out[i] = e.Event
	}
	return out
}
