package sim

import (
	"context"
	"iter"

	"switchboard/queue"
)

func (s *store) StepStates(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended] {
	out := make([]queue.Outcome[queue.Appended], len(steps))
	for i, step := range steps {
		about := subject{channel: step.Channel, client: step.Conn.Client, owner: step.Conn.Server}
		out[i].Value, out[i].Err = callStore(ctx, s, "StepState", about, func(ctx context.Context) (queue.Appended, error) {
			o := s.w.queue.StepStates(ctx, []queue.StateStep{step})[0]
			return o.Value, o.Err
		}, step)
	}
	return out
}

func (s *store) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	out := make([]queue.Outcome[queue.StatePage], len(reads))
	for i, read := range reads {
		out[i].Value, out[i].Err = callStore(ctx, s, "ReadState", subject{channel: read.Channel}, func(ctx context.Context) (queue.StatePage, error) {
			o := s.w.queue.ReadStates(ctx, []queue.StateRead{read})[0]
			return o.Value, o.Err
		}, read)
	}
	return out
}

func (s *store) StateServers(ctx context.Context, channel string) ([]string, error) {
	return callStore(ctx, s, "StateServers", subject{channel: channel}, func(ctx context.Context) ([]string, error) {
		return s.w.queue.StateServers(ctx, channel)
	}, channel)
}

// StateChannels does not park: the janitor's rounds over states run by themselves.
func (s *store) StateChannels(ctx context.Context) iter.Seq2[string, error] {
	return s.w.queue.StateChannels(ctx)
}
