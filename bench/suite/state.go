package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchboard/bench/swarm"
	"switchboard/bench/system"
)

// stateFields returns the names of n fields. One of them is the field that pushes change.
func stateFields(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("seat/", i)
	}
	return names
}

// fill sets the fields of all channels, if the system has fields.
func (t *trial) fill(ctx context.Context, p *publishers) error {
	if !t.contender.state {
		return nil
	}
	t.show("setting %d fields in each of %d channels", t.size.fields, t.size.channels)
	fields, value := stateFields(t.size.fields), swarm.AppendPayload(nil, 0, 0)
	join := p.start(ctx, func(ctx context.Context, w *publisher) error {
		for c := w.index; c < t.size.channels; c += len(p.conns) {
			if err := p.conns[w.index].(system.StatePublisher).Fill(ctx, channelName(c), fields, value); err != nil {
				return err
			}
		}
		return nil
	})
	return join()
}

// withState opens the publishers, fills the channels, and calls do.
func (t *trial) withState(ctx context.Context, do func(p *publishers) error) error {
	return t.withPublishers(func(p *publishers) error {
		if err := t.fill(ctx, p); err != nil {
			return err
		}
		return do(p)
	})
}

// filled returns a measurement that fills the channels before another measurement.
func filled(measure func(context.Context, *trial) error) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		if err := t.withState(ctx, func(*publishers) error { return nil }); err != nil {
			return err
		}
		return measure(ctx, t)
	}
}

// measureUpdates measures pushes to channels with one subscriber each. A system with state changes
// one field of the channel, and the others send messages.
func measureUpdates(ctx context.Context, t *trial) error {
	if t.storeOnly() {
		return t.withState(ctx, func(p *publishers) error { return t.measureStoreWrites(ctx, p) })
	}
	return filled(measureSingle)(ctx, t)
}

// storeOnly reports whether the system has no subscribers.
func (t *trial) storeOnly() bool {
	_, ok := t.running.(system.StoreOnly)
	return ok
}

// measureStoreWrites measures a closed loop of writes to a store without subscribers.
func (t *trial) measureStoreWrites(ctx context.Context, p *publishers) error {
	end := time.Now().Add(t.size.time)
	spent, err := t.spent(func() error {
		return p.start(ctx, func(ctx context.Context, w *publisher) error {
			for time.Now().Before(end) {
				if err := w.push(ctx, 1, 0); err != nil {
					return err
				}
			}
			return nil
		})()
	})
	if err == nil {
		t.recordPushes(spent, t.pushLog.pushes)
	}
	return err
}

// measurePages measures reads of all fields of a channel.
func measurePages(ctx context.Context, t *trial) error {
	return t.withState(ctx, func(p *publishers) error {
		if err := t.awaitQuiet(ctx); err != nil {
			return err
		}
		end, pages := time.Now().Add(t.size.time), make([]int64, len(p.conns))
		spent, err := t.spent(func() error {
			return p.start(ctx, func(ctx context.Context, w *publisher) error {
				return w.readPages(ctx, end, &pages[w.index])
			})()
		})
		if err == nil {
			t.recordPages(spent, pages)
		}
		return err
	})
}

// readPages reads pages of the publisher's channels in turn until end, and counts them.
func (w *publisher) readPages(ctx context.Context, end time.Time, pages *int64) error {
	reader := w.all.conns[w.index].(system.StatePublisher)
	for ; time.Now().Before(end); *pages++ {
		channel := channelName(w.channels[w.next])
		w.next = (w.next + 1) % len(w.channels)
		switch n, err := reader.ReadState(ctx, channel); {
		case err != nil:
			return err
		case n != w.all.t.size.fields:
			return fmt.Errorf("the page of %s has %d fields, not %d", channel, n, w.all.t.size.fields)
		}
	}
	return nil
}

// recordPages records the cost of a page. pages are the numbers by reader.
func (t *trial) recordPages(spent counters, pages []int64) {
	var n int64
	for _, one := range pages {
		n += one
	}
	t.record("cpu_us_per_page", micros(spent.total(), n))
	t.record("pages_per_s", spent.perSecond(n))
	if t.redis != nil {
		t.record("redis_us_per_page", micros(spent.redis, n))
	}
}

// measureStateFanOut measures one publisher and one channel, one push at a time.
func measureStateFanOut(ctx context.Context, t *trial) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	return t.withPublishers(func(p *publishers) error {
		if err := p.pushToEach(ctx, true); err != nil {
			return err
		}
		return t.measureEachDelivery(ctx, p)
	})
}

// measureStateMemory measures the memory of fields: in the store when they are set, and in the
// server when each channel gets a subscriber.
func measureStateMemory(ctx context.Context, t *trial) error {
	heap, ok := t.running.(system.HeapReader)
	if !ok && !t.storeOnly() {
		return errors.New("the system does not report its heap")
	}
	fields := float64(t.size.fields * t.size.channels)
	read := func() (server, store float64, err error) {
		if err := t.awaitQuiet(ctx); err != nil {
			return 0, 0, err
		}
		if heap != nil {
			server, _, err = heap.Heap(ctx)
		}
		if err == nil && t.redis != nil {
			store, err = t.redis.info(ctx, "Memory", "used_memory")
		}
		return server, store, err
	}
	return t.withPublishers(func(p *publishers) error {
		emptyServer, emptyStore, err := read()
		if err != nil {
			return err
		}
		if err := t.fill(ctx, p); err != nil {
			return err
		}
		server, store, err := read()
		if err != nil {
			return err
		}
		inStore := server - emptyServer
		if t.redis != nil {
			inStore = store - emptyStore
			state, err := t.redis.memoryOf(ctx, statePattern)
			if err != nil {
				return err
			}
			t.record("state_bytes_per_field", state/fields)
		}
		t.record("store_bytes_per_field", inStore/fields)
		if t.storeOnly() {
			return nil
		}
		if err := t.connect(ctx); err != nil {
			return err
		}
		full, _, err := read()
		t.record("snapshot_bytes_per_field", (full-server)/fields)
		return err
	})
}

// statePattern matches the keys of the state in Redis: those of this project's broker (st_…) and of
// centrifuge (centrifuge:state:…). The others hold the log.
const statePattern = "*st[_a]*"

// measureIdleConnections measures the memory of idle connections.
func measureIdleConnections(ctx context.Context, t *trial) error { return t.measureIdleMemory(ctx) }
