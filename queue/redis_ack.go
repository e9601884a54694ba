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
	answers, err := r.pipe.EvalEach(ctx, targets...)
	var firsts sync.WaitGroup
	for i, a := range acks {
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
		switch {
		case err != nil:
			end(0, err)
		case answers[i].Err != nil:
			end(0, answers[i].Err)
		default:
			if removed, usual := answers[i].Value.(int64); usual {
				end(removed, nil)
			} else {
				firsts.Go(func() { end(r.ackFirst(ctx, a)) })
			}
		}
	}
	firsts.Wait()
	return out
}

func (r *Redis) acknowledgement(a Ack, keys []string) redispipe.Target {
	return redispipe.Target{Group: r.ack, Keys: keys, Args: []any{decimal(a.Generation), decimal(a.ID)}}
}
