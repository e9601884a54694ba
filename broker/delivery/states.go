package delivery

import (
	"context"
	"errors"

	"switchboard/broker/peer"
	"switchboard/internal/state"
	"switchboard/queue"
)

// StepStates changes the states of channels without a push, and notifies the servers with
// subscribers of each change. The outcome of a step that changes nothing has the ID 0.
func (p *Pusher) StepStates(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended] {
	outcomes := p.opts.States.StepStates(ctx, steps)
	changes := trackedChanges{Pusher: p}
	for i, o := range outcomes {
		channel := steps[i].Channel
		if o.Err != nil && !errors.Is(o.Err, queue.ErrStale) { // a stale step may have removed fields that were due
			p.recordFailure(queueKey{peer.Channel, channel}, o.Err)
			continue
		}
		p.announce(channel, o.Value, state.Message{})
		changes.add(channel, o.Value)
	}
	changes.report(ctx)
	return outcomes
}
