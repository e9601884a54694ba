package queue

import (
	"context"
	"fmt"
	"sync"

	"switchboard/internal/redispipe"
)

// Ack implements [Queue].
func (r *Redis) Ack(ctx context.Context, client string, generation, id int64) (int, error) {
	o := r.Acks(ctx, []Ack{{client, generation, id}})[0]
	return o.Value, o.Err
}

// Acks implements [Queue].
func (r *Redis) Acks(ctx context.Context, acks []Ack) []Outcome[int] {
	out := make([]Outcome[int], len(acks))
	targets := make([]redispipe.Target, len(acks))
	for i, a := range acks {
		targets[i] = r.acknowledgement(a, r.clientKeys(a.Client))
	}
	var firsts sync.WaitGroup
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		a := acks[i]
		end := func(removed int64, err error) {
			if err == nil {
				err = fence(removed)
			}
			if err != nil {
				out[i].Err = fmt.Errorf("acknowledge %d of client %s: %w", a.ID, a.Client, err)
				return
			}
			out[i].Value = int(removed)
		}
		if removed, usual := answer.Value.(int64); usual || answer.Err != nil {
			end(removed, answer.Err)
		} else {
			firsts.Go(func() { end(r.ackFirst(ctx, a)) })
		}
	}
	firsts.Wait()
	return out
}

func (r *Redis) acknowledgement(a Ack, keys []string) redispipe.Target {
	return redispipe.Target{Group: r.ack, Keys: keys, Args: []any{decimal(a.Generation), decimal(a.ID)}}
}
