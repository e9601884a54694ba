package main

import (
	"context"
	"errors"

	"switchboard/bench/system"
)

// measureLoad measures the cost of a connection and its memory, and then the cost of a push and of
// a delivery when each delivery is a separate write.
func measureLoad(ctx context.Context, t *trial) error {
	emptyHeap, emptyStacks, err := t.heap(ctx)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	hasHeap := err == nil
	if err := t.measureIdleMemory(ctx); err != nil {
		return err
	}
	if hasHeap {
		heap, stacks, err := t.heap(ctx)
		if err != nil {
			return err
		}
		t.record("heap_bytes_per_conn", (heap-emptyHeap)/float64(t.size.connections))
		t.record("stack_bytes_per_conn", (stacks-emptyStacks)/float64(t.size.connections))
	}
	return t.withPublishers(func(p *publishers) error {
		spent, pushes, err := t.spentPushing(func() (int64, error) { return p.oneAtATime(ctx) })
		if err == nil {
			t.recordLoad(spent, pushes)
		}
		return err
	})
}

func (t *trial) recordLoad(spent counters, pushes int64) {
	t.recordDeliveries(spent)
	t.recordPushCost(spent, pushes)
}

// heap collects garbage and returns the memory in use by the server's heap and stacks. The error is
// errors.ErrUnsupported if the server does not report it.
func (t *trial) heap(ctx context.Context) (heap, stacks float64, err error) {
	reader, ok := t.running.(system.HeapReader)
	if !ok {
		return 0, 0, errors.ErrUnsupported
	}
	return reader.Heap(ctx)
}

// measureLoadLoop measures the same in a closed loop.
func measureLoadLoop(ctx context.Context, t *trial) error {
	return t.measureClosedLoop(ctx, t.recordLoad)
}
