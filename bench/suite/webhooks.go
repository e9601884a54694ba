package main

import (
	"context"
	"time"

	"switchboard/bench/system"
	"switchboard/bench/usage"
)

// webhookEvents returns the number of events that the backend has received, and the janitor's
// process id. ok is false without webhooks.
func (t *trial) webhookEvents() (events int64, janitor int, ok bool) {
	counter, ok := t.running.(system.WebhookCounter)
	if !ok {
		return 0, 0, false
	}
	return counter.WebhookEvents()
}

// awaitEvents waits until the backend has received an event for each user and each channel.
func (t *trial) awaitEvents(ctx context.Context) error {
	want := int64(t.size.connections + t.size.channels)
	for {
		events, _, ok := t.webhookEvents()
		if !ok || events >= want {
			return nil
		}
		t.show("%d of %d events are sent", events, want)
		if err := t.idle(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// janitorCPU returns the CPU time of the janitor, 0 without one.
func (t *trial) janitorCPU() (time.Duration, error) {
	_, pid, ok := t.webhookEvents()
	if !ok {
		return 0, nil
	}
	return usage.CPU(pid)
}

// recordJanitorCPU records the CPU time of the janitor since before.
func (t *trial) recordJanitorCPU(before time.Duration) error {
	now, err := t.janitorCPU()
	if _, _, ok := t.webhookEvents(); ok && err == nil {
		t.record("janitor_us_per_conn", micros(now-before, int64(t.size.connections)))
	}
	return err
}
