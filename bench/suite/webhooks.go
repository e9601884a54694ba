package main

import (
	"context"
	"time"

	"switchboard/bench/system"
	"switchboard/bench/usage"
)

// told is what the backend was told, where there is one.
func (t *trial) told() (events int64, janitor int, ok bool) {
	teller, ok := t.running.(system.Teller)
	if !ok {
		return 0, 0, false
	}
	return teller.Told()
}

// awaitEvents waits until the backend was told of each user and each channel.
func (t *trial) awaitEvents(ctx context.Context) error {
	want := int64(t.size.connections + t.size.channels)
	for {
		events, _, ok := t.told()
		if !ok || events >= want {
			return nil
		}
		t.show("%d of %d events are sent", events, want)
		if err := t.swarm.Idle(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// janitor is the CPU time of the process that sends events; 0 without one.
func (t *trial) janitor() (time.Duration, error) {
	_, pid, ok := t.told()
	if !ok {
		return 0, nil
	}
	return usage.CPU(pid)
}

// foundJanitor notes what that process used since before.
func (t *trial) foundJanitor(before time.Duration) error {
	now, err := t.janitor()
	if _, _, ok := t.told(); ok && err == nil {
		t.found("janitor_us_per_conn", micros(now-before, int64(t.size.connections)))
	}
	return err
}
