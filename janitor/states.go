package janitor

import (
	"context"
	"time"

	"switchboard/internal/state"
	"switchboard/queue"
)

// StatesRound removes what is due from each state of a channel: fields, and whole states that were
// not written for their keeping time. It also ends the connections of servers that are neither
// listed nor leased: a failover of the store may have lost their bindings, by which ServersRound
// finds the channels. Errors do not stop the round, as in ServersRound.
func (j *Janitor) StatesRound(ctx context.Context) (Report, error) {
	return j.measured(states, func(counts *counters) error {
		cache, err := j.newServerCache(ctx)
		if err != nil {
			return err
		}
		var errs errorList
		var page []string
		sweep := func() {
			j.each(ctx, page, func(channel string) {
				if err := j.sweepState(ctx, channel, cache, counts); err != nil {
					errs.add(err)
				}
			})
			page = page[:0]
			if err := j.notifyStates(ctx, counts); err != nil {
				errs.add(err)
			}
		}
		for channel, err := range j.opts.Queue.StateChannels(ctx) {
			if err != nil {
				return errs.join(ctx, err)
			}
			if page = append(page, channel); len(page) == pageSize {
				sweep()
			}
		}
		sweep()
		return errs.join(ctx)
	})
}

// sweepState removes what is due from the state of a channel.
func (j *Janitor) sweepState(ctx context.Context, channel string, cache *serverCache, counts *counters) error {
	servers, err := j.opts.Queue.StateServers(ctx, channel)
	if err != nil {
		return err
	}
	for _, server := range servers {
		orphan, err := cache.orphan(ctx, server)
		if err != nil {
			return err
		}
		if orphan {
			if err := j.endOwners(ctx, server, channel, counts); err != nil {
				return err
			}
		}
	}
	return j.stepState(ctx, queue.StateStep{Channel: channel, Kind: queue.Sweep}, counts)
}

// endOwners ends the connections of a dead server that own fields of the channel.
func (j *Janitor) endOwners(ctx context.Context, server, channel string, counts *counters) error {
	return j.stepState(ctx, queue.StateStep{
		Channel: channel, Kind: queue.ServerEnded, Conn: state.Connection{Server: server},
	}, counts)
}

func (j *Janitor) stepState(ctx context.Context, step queue.StateStep, counts *counters) error {
	if j.opts.DryRun {
		return nil
	}
	o := j.opts.Queue.StepStates(ctx, []queue.StateStep{step})[0]
	if o.Err != nil || o.Value.ID == 0 {
		return o.Err
	}
	counts.add(Report{States: 1})
	counts.stale.add(o.Value.Servers)
	if j.opts.FieldEnds != nil {
		j.opts.FieldEnds.Changed(ctx, []string{step.Channel}, []queue.Appended{o.Value})
	}
	return nil
}

// notifyTimeout limits the end of a janitor that is stopped.
const notifyTimeout = 2 * time.Second

// notifyStates makes the servers read the states that the round has changed since the last call. A
// janitor has no links to them, so they notice it at their next beat.
func (j *Janitor) notifyStates(ctx context.Context, counts *counters) error {
	servers := counts.stale.take()
	if len(servers) == 0 {
		return nil
	}
	// Also after ctx has ended: another round does not find the changes.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
	defer cancel()
	return j.opts.Registry.NotifyStates(ctx, servers)
}
