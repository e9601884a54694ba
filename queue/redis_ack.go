package queue

import (
	"context"
	"fmt"
	"sync"

	"switchboard/internal/redispipe"
)

// Ack removes the messages with ids up to id from the client's list and returns their number. An id
// that was never assigned counts as the last one. The error is ErrStale or ErrForgotten if the
// generation is not the current one.
//
// If a removed message has an AckGroup, Ack withdraws the other copies from the queues of the
// user's other clients. These clients see no gap and no loss. After an error the withdrawal may be
// incomplete. Repeating the Ack completes it, and so does any later Ack of the client.
func (r *Redis) Ack(ctx context.Context, client string, generation, id int64) (int, error) {
	o := r.Acks(ctx, []Ack{{client, generation, id}})[0]
	return o.Value, o.Err
}

// Acks makes each acknowledgement like Ack, in as few round trips as possible, in no particular
// order.
func (r *Redis) Acks(ctx context.Context, acks []Ack) []Outcome[int] {
	out := make([]Outcome[int], len(acks))
	targets := make([]redispipe.Target, len(acks))
	for i, a := range acks {
		targets[i] = r.ackTarget(a, r.clientKeys(a.Client))
	}
	var grouped sync.WaitGroup
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		a := acks[i]
		setOutcome := func(removed int64, err error) {
			if err == nil {
				err = fenceError(removed)
			}
			if err != nil {
				out[i].Err = fmt.Errorf("acknowledge %d of client %s: %w", a.ID, a.Client, err)
				return
			}
			out[i].Value = int(removed)
		}
		if removed, done := answer.Value.(int64); done || answer.Err != nil {
			setOutcome(removed, answer.Err)
		} else { // some of the messages may have a group
			grouped.Go(func() { setOutcome(r.ackGrouped(ctx, a)) })
		}
	}
	grouped.Wait()
	return out
}

func (r *Redis) ackTarget(a Ack, keys []string) redispipe.Target {
	return redispipe.Target{Script: r.ack, Keys: keys, Args: []any{decimal(a.Generation), decimal(a.ID)}}
}
