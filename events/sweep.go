package events

import (
	"context"
	"fmt"
)

// SweepRound takes the next page of the entries that are reported present in each shard, and
// schedules checks of those that are not present. It does the same with tracked channels: it checks
// those that have messages after the reported position, and those whose fields end. It finds
// changes whose process was killed before it could record them. The cost of a round is bounded: it
// queries up to 4096 entries of both kinds. That is all of them in most systems; a million entries
// take up to 250 rounds. SweepRound creates no events: the due list applies the grace and the
// fencing.
func (d *Dispatcher) SweepRound(ctx context.Context) (Report, error) {
	d.sweepMu.Lock()
	defer d.sweepMu.Unlock()
	report, err := eachShard(ctx, d.sweep)
	fields, fieldsErr := eachShard(ctx, d.sweepFields)
	report.add(fields)
	if err == nil {
		err = fieldsErr
	}
	if err != nil {
		return report, fmt.Errorf("sweep: %w", err)
	}
	return report, nil
}

func (d *Dispatcher) sweep(ctx context.Context, shard int) (report Report, err error) {
	entries, next, err := d.opts.Store.ReportedPresent(ctx, shard, d.cursors[shard], pageSize)
	if err != nil {
		return report, err
	}
	var q presenceQuery
	for _, entry := range entries {
		q.add(entry)
	}
	states, err := q.run(ctx, d.opts.Truth)
	var absent []Check
	for entry, present := range states {
		if !present {
			absent = append(absent, Check{shard, entry})
		}
	}
	for _, scheduleErr := range d.opts.Store.Schedule(ctx, Grace, absent...) {
		if scheduleErr != nil {
			return report, scheduleErr
		}
		report.Checked++
	}
	if err == nil { // after an error, the next round repeats the page
		d.cursors[shard] = next
	}
	return report, err
}
