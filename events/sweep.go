package events

import (
	"context"
	"fmt"
)

// SweepRound looks at some of those who are told present, the next ones in each shard, and has those looked at again who
// are not: somebody was killed before he could note it. A round costs the same however many there are: up to
// 4096 questions, which is all of them in most systems, and a million in as many as 250 rounds. Nothing is told
// here, for the grace and the fence are those of the due list.
func (d *Dispatcher) SweepRound(ctx context.Context) (Report, error) {
	d.sweeping.Lock()
	defer d.sweeping.Unlock()
	did, err := eachShard(ctx, d.sweep)
	if err != nil {
		return did, fmt.Errorf("sweep: %w", err)
	}
	return did, nil
}

func (d *Dispatcher) sweep(ctx context.Context, shard int) (did Report, err error) {
	entries, next, err := d.opts.Store.Told(ctx, shard, d.swept[shard], page)
	if err != nil {
		return did, err
	}
	var q questions
	for _, entry := range entries {
		q.ask(entry)
	}
	truth, err := q.answer(ctx, d.opts.Truth)
	var gone []Change
	for entry, present := range truth {
		if !present {
			gone = append(gone, Change{shard, entry})
		}
	}
	for _, failed := range d.opts.Store.Changed(ctx, Grace, gone...) {
		if failed != nil {
			return did, failed
		}
		did.Checked++
	}
	if err == nil { // else the same again
		d.swept[shard] = next
	}
	return did, err
}
