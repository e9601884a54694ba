package sim

import (
	"context"
	"fmt"
	"iter"

	"switchboard/internal/state"
	"switchboard/queue"
)

func (s *store) stepState(ctx context.Context, step queue.StateStep) (queue.Appended, error) {
	return callStore(ctx, s, "StepState", subject{channel: step.Channel}, func(ctx context.Context) (queue.Appended, error) {
		o := s.w.queue.StepStates(ctx, []queue.StateStep{step})[0]
		return o.Value, o.Err
	}, step.Channel, step.Kind, step.Conn)
}

func (s *store) StepStates(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended] {
	return concurrently(ctx, steps, s.stepState)
}

func (s *store) readState(ctx context.Context, read queue.StateRead) (queue.StatePage, error) {
	return callStore(ctx, s, "ReadState", subject{channel: read.Channel}, func(ctx context.Context) (queue.StatePage, error) {
		o := s.w.queue.ReadStates(ctx, []queue.StateRead{read})[0]
		return o.Value, o.Err
	}, read)
}

func (s *store) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	return concurrently(ctx, reads, s.readState)
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

// owning is the text of operations that make the client an owner.
var owning = fmt.Sprint("own ", state.Own)

// describeUpdate returns the text of an update in the trace.
func describeUpdate(u *state.Update) string {
	if u == nil {
		return ""
	}
	text := fmt.Sprintf("by %s %d: ", u.Writer, u.Generation)
	for _, op := range u.Ops {
		text += fmt.Sprintf("%d %s=%s+%d %v own %d; ", op.Kind, op.Field, op.Value, op.By, op.TTL, op.Own)
	}
	return text + string(u.Data)
}
