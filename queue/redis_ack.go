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
// user's other clients. There they are neither lost nor a gap. After an error the withdrawal may be
// incomplete; the same Ack repeated, or any later one, completes it.
func (r *Redis) Ack(ctx context.Context, client string, generation, id int64) (int, error) {
	o := r.Acks(ctx, []Ack{{client, generation, id}})[0]
	return o.Value, o.Err
}

// Acks does for each acknowledgement what Ack does, like AppendChannels.
func (r *Redis) Acks(ctx context.Context, acks []Ack) []Outcome[int] {
	out := make([]Outcome[int], len(acks))
	targets := make([]redispipe.Target, len(acks))
	for i, a := range acks {
		targets[i] = r.ackTarget(a, r.clientKeys(a.Client))
	}
	var grouped sync.WaitGroup
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		a := acks[i]
		end := func(removed int64, err error) {
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
			end(removed, answer.Err)
		} else { // some of the messages may have a group
			grouped.Go(func() { end(r.ackGrouped(ctx, a)) })
		}
	}
	grouped.Wait()
	return out
}

func (r *Redis) ackTarget(a Ack, keys []string) redispipe.Target {
	return redispipe.Target{Script: r.ack, Keys: keys, Args: []any{decimal(a.Generation), decimal(a.ID)}}
}
