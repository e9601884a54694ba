//go:build long

package linear

import (
	"context"
	"sync"
	"testing"

	"switchboard/internal/state"
	"switchboard/queue"
)

// faultyStore is a store in memory with one fault.
type faultyStore struct {
	*queue.Memory
	push func(q *queue.Memory, push queue.ChannelPush) (queue.Appended, error)
	read func(page, earlier queue.StatePage) queue.StatePage
	step func(*queue.StateStep)

	mu      sync.Mutex // guards earlier
	earlier queue.StatePage
}

func (s *faultyStore) AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error) {
	if s.push == nil || push.Update == nil {
		return s.Memory.AppendChannel(ctx, push)
	}
	return s.push(s.Memory, push)
}

func (s *faultyStore) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	out := s.Memory.ReadStates(ctx, reads)
	if s.read == nil || len(reads[0].Fields) > 0 || reads[0].Prefix != "" || reads[0].Limit > 0 {
		return out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	page := out[0].Value
	out[0].Value, s.earlier = s.read(page, s.earlier), page
	return out
}

// StepStates implements store.
func (s *faultyStore) StepStates(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended] {
	for i := range steps {
		if s.step != nil {
			s.step(&steps[i])
		}
	}
	return s.Memory.StepStates(ctx, steps)
}

// changed returns a store that changes each update before it applies it.
func changed(change func(*queue.ChannelPush)) *faultyStore {
	return &faultyStore{push: func(q *queue.Memory, push queue.ChannelPush) (queue.Appended, error) {
		u := *push.Update
		u.Ops = append([]state.Op{}, u.Ops...)
		push.Update = &u
		change(&push)
		return q.AppendChannel(context.Background(), push)
	}}
}

// eachOp returns a store that changes each operation.
func eachOp(change func(*state.Op)) *faultyStore {
	return changed(func(push *queue.ChannelPush) {
		for i := range push.Update.Ops {
			change(&push.Update.Ops[i])
		}
	})
}

// TestFaultyStores checks that a history over a store with a fault is not accepted.
func TestFaultyStores(t *testing.T) {
	for name, open := range map[string]func() *faultyStore{
		"conditions are ignored": func() *faultyStore { return changed(func(p *queue.ChannelPush) { p.Update.If = nil }) },
		"keys are ignored":       func() *faultyStore { return changed(func(p *queue.ChannelPush) { p.Key = "" }) },
		"claims are ignored":     func() *faultyStore { return eachOp(func(op *state.Op) { op.Claim = false }) },
		"the limit of a group is ignored": func() *faultyStore {
			return eachOp(func(op *state.Op) { op.GroupMax = 0 })
		},
		"a group may have one field too many": func() *faultyStore {
			return eachOp(func(op *state.Op) { op.GroupMax += min(op.GroupMax, 1) })
		},
		"leases are too long": func() *faultyStore { return eachOp(func(op *state.Op) { op.TTL *= 2 }) },
		"bounds are ignored": func() *faultyStore {
			return eachOp(func(op *state.Op) { op.Min, op.Max = -state.MaxNumber, state.MaxNumber })
		},
		"parents are ignored": func() *faultyStore {
			return eachOp(func(op *state.Op) { op.Parent, op.HeldParent = "", false })
		},
		"any writer may change a part": func() *faultyStore { return eachOp(func(op *state.Op) { op.HeldParent = false }) },
		"owners are ignored":           func() *faultyStore { return eachOp(func(op *state.Op) { op.Own = state.KeepOwners }) },
		"the grace period is too long": func() *faultyStore { return eachOp(func(op *state.Op) { op.Grace *= 2 }) },
		"a client owns too many fields": func() *faultyStore {
			return changed(func(p *queue.ChannelPush) { p.Update.Owned += min(p.Update.Owned, 1) })
		},
		"a generation that has ended writes": func() *faultyStore {
			return changed(func(p *queue.ChannelPush) { p.Update.Generation += 1000 })
		},
		"ends of owners are ignored": func() *faultyStore {
			return &faultyStore{step: func(step *queue.StateStep) {
				if step.Kind == queue.OwnerEnded {
					step.Kind = queue.Sweep
				}
			}}
		},
		"ends of servers are ignored": func() *faultyStore {
			return &faultyStore{step: func(step *queue.StateStep) {
				if step.Kind == queue.ServerEnded {
					step.Kind = queue.Sweep
				}
			}}
		},
		"a stale client comes back": func() *faultyStore {
			return &faultyStore{step: func(step *queue.StateStep) {
				if step.Kind == queue.OwnerBack {
					step.Conn.Generation += 1000
				}
			}}
		},
		"the end of an old connection ends the new one": func() *faultyStore {
			return &faultyStore{step: func(step *queue.StateStep) { step.Conn.Generation += 1000 }}
		},
		"an update is applied in two steps": func() *faultyStore {
			return &faultyStore{push: func(q *queue.Memory, push queue.ChannelPush) (queue.Appended, error) {
				first, second := *push.Update, *push.Update
				if len(first.Ops) < 2 {
					return q.AppendChannel(context.Background(), push)
				}
				first.Ops, first.Data, second.Ops = first.Ops[:1], nil, second.Ops[1:]
				if _, err := q.AppendChannel(context.Background(), queue.ChannelPush{Channel: channel, Update: &first}); err != nil {
					return queue.Appended{}, err
				}
				push.Update = &second
				return q.AppendChannel(context.Background(), push)
			}}
		},
		"an update is applied twice": func() *faultyStore {
			return &faultyStore{push: func(q *queue.Memory, push queue.ChannelPush) (queue.Appended, error) {
				if push.Key == "" {
					_, _ = q.AppendChannel(context.Background(), push)
				}
				return q.AppendChannel(context.Background(), push)
			}}
		},
		"an acknowledged update is lost": func() *faultyStore {
			kept := queue.Appended{}
			var mu sync.Mutex
			return &faultyStore{push: func(q *queue.Memory, push queue.ChannelPush) (queue.Appended, error) {
				mu.Lock()
				defer mu.Unlock()
				if len(push.Update.Ops) != 1 || push.Update.Ops[0].Kind != state.Set || push.Update.If != nil || kept.ID == 0 {
					a, err := q.AppendChannel(context.Background(), push)
					kept = a
					return a, err
				}
				return queue.Appended{ID: kept.ID + 1, Prev: kept.ID}, nil
			}}
		},
		"a page is an earlier one": func() *faultyStore {
			return &faultyStore{read: func(_, earlier queue.StatePage) queue.StatePage { return earlier }}
		},
		"the id of a page is too high": func() *faultyStore {
			return &faultyStore{read: func(page, earlier queue.StatePage) queue.StatePage {
				earlier.ID, earlier.Clock = page.ID, page.Clock
				return earlier
			}}
		},
		"a page has fields that are due": func() *faultyStore {
			return &faultyStore{read: func(page, earlier queue.StatePage) queue.StatePage {
				if earlier.ID == page.ID && len(earlier.Fields) > len(page.Fields) {
					page.Fields = earlier.Fields
				}
				return page
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(50) {
				s, h := open(), newHistory()
				s.Memory = newMemory()
				newWorkload(seed).run(t.Context(), h, s)
				if wrong := h.check(readLog(t, s), nil); wrong != "" {
					t.Logf("after %d histories: %.200s", seed+1, wrong)
					return
				}
			}
			t.Error("50 histories are accepted")
		})
	}
}
