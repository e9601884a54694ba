package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/replay"
	"switchboard/internal/state"
	"switchboard/internal/testbed"
)

// awaitStates waits until all subscribers hold the fields of the store, and then checks everything
// that was recorded against the log of the store.
func (tb *bed) awaitStates(ctx context.Context, s scale) error {
	var found stateDifferences
	err := within(ctx, tb.deliveryTimeout(), 200*time.Millisecond, func() (err error) {
		if found, err = tb.compareStates(ctx, s); err == nil && !found.isEmpty() {
			err = errNotYet
		}
		return err
	})
	if err != nil && !errors.Is(err, errNotYet) {
		return err
	}
	if err := tb.awaitOwnersEnd(ctx); err != nil {
		return err
	}
	check := tb.newStateCheck()
	check.addDifferences(found)
	for i := range s.StateRooms {
		log, err := replay.Redis(ctx, tb.store.client, room(s, i))
		if err != nil {
			return err
		}
		tb.state.update(func() { check.checkChannel(room(s, i), log) })
	}
	tb.states = check.finish(tb.times)
	return nil
}

// newStateCheck returns the check of this scenario.
func (tb *bed) newStateCheck() *stateCheck {
	c := &stateCheck{journal: tb.state, found: evidence{}, outage: tb.journal.outages().Pauses, victim: tb.victimID, inJS: map[string]bool{}}
	for _, spec := range tb.clientSpecs {
		c.inJS[spec.client] = spec.listener == javaScript
	}
	faultBegan, faultEnded := tb.journal.faultAt.Add(-2*tb.times.Beat), tb.state.faultEnded
	c.judged = func(from, to time.Time) bool {
		return !tb.scenario.forgets || to.Before(faultBegan) || from.After(faultEnded)
	}
	return c
}

// finish adds what does not depend on the log, and returns the counts.
func (c *stateCheck) finish(t times) *stateCheck {
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	c.counts.Oversold += c.journal.oversold
	for kind, cases := range c.journal.evidence {
		c.found[kind] = slices.Concat(c.found[kind], cases)
	}
	for client, o := range c.journal.owners {
		switch away := o.away.Sub(o.endedAt); {
		case o.endedAt.IsZero():
		case o.away.IsZero() || away > t.awayBound():
			c.counts.GhostFields++
			c.found.add("ghost field", "the field of %s was not away %s after the end of its server", client, t.awayBound())
		default:
			c.counts.AwayMax = max(c.counts.AwayMax, away)
			if t.awaitsGrace() && o.ended.IsZero() {
				c.counts.GhostFields++
				c.found.add("ghost field", "the field of %s was away after %s, and did not end", client, away)
			}
		}
	}
	if n := len(c.late); n > 0 {
		slices.Sort(c.late)
		c.counts.LateP50, c.counts.LateMax = c.late[n/2], c.late[n-1]
	}
	return c
}

// awayBound is the most time from the death of an owner's broker until its field is away. It
// includes the lease for which the janitor may be dead, too.
func (t times) awayBound() time.Duration { return t.lease() + t.cleanupBound() }

// awaitsGrace reports whether the run waits for the end of the grace period of fields. A short run
// does not.
func (t times) awaitsGrace() bool { return t.Beat >= fullBeat }

// awaitOwnersEnd waits until the fields of the clients that died with their broker have ended.
func (tb *bed) awaitOwnersEnd(ctx context.Context) error {
	if !tb.times.awaitsGrace() {
		return nil
	}
	bound := tb.times.awayBound() + stateGrace + lateBound
	for {
		waiting := false
		tb.state.update(func() {
			for _, o := range tb.state.owners {
				waiting = waiting || !o.endedAt.IsZero() && o.ended.IsZero() && time.Since(o.endedAt) < bound
			}
		})
		if !waiting {
			return nil
		}
		if err := await.Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// stateDifferences are the differences between the fields that subscribers hold and those of the
// store.
type stateDifferences struct {
	diverged []string
	ghosts   []string // fields that are due
	missed   []string // changes that did not arrive
}

func (d stateDifferences) isEmpty() bool { return len(d.diverged)+len(d.ghosts)+len(d.missed) == 0 }

// addDifferences records the differences that remain. The check of the log counts the changes that
// did not arrive.
func (c *stateCheck) addDifferences(d stateDifferences) {
	c.counts.Diverged += len(d.diverged)
	c.counts.GhostFields += len(d.ghosts)
	for _, text := range d.diverged {
		c.found.add("diverged", "%s", text)
	}
	for _, text := range d.ghosts {
		c.found.add("ghost field", "%s", text)
	}
}

// compareStates compares what the subscribers hold with the pages of the brokers, which read the
// store.
func (tb *bed) compareStates(ctx context.Context, s scale) (d stateDifferences, err error) {
	if err := tb.sdk.readHeld(ctx); err != nil {
		return d, err
	}
	for i := range s.StateRooms {
		channel := room(s, i)
		stored, err := readState(ctx, tb.brokers[i%len(tb.brokers)], channel)
		if err != nil {
			return d, err
		}
		for _, c := range tb.clients {
			if c.state != channel {
				continue
			}
			d.compare(c.clientSpec.client+" in "+channel, c.fields(), stored, time.Now())
		}
	}
	tb.state.update(func() {
		for _, call := range tb.state.calls {
			for client, s := range tb.state.subscribers {
				if call.id != 0 && s.missed(call) {
					d.missed = append(d.missed, client)
				}
			}
		}
	})
	return d, nil
}

// compare adds the differences of one subscriber.
func (d *stateDifferences) compare(subscriber string, held, stored map[string]state.Shown, now time.Time) {
	names := maps.Clone(stored)
	maps.Copy(names, held)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		mine, isHeld := held[name]
		theirs, isStored := stored[name]
		switch {
		case isHeld && isStored && mine.ID == theirs.ID && string(mine.Value) == string(theirs.Value) && mine.Until == theirs.Until && mine.Away == theirs.Away:
		case isHeld && !isStored && mine.Until != 0 && mine.Until <= now.UnixMilli():
			d.ghosts = append(d.ghosts, fmt.Sprintf("%s: %s is shown %d ms after its end", subscriber, name, now.UnixMilli()-mine.Until))
		default:
			d.diverged = append(d.diverged, fmt.Sprintf("%s: %s is %s, in the store %s", subscriber, name, describeField(mine, isHeld), describeField(theirs, isStored)))
		}
	}
}

func describeField(f state.Shown, found bool) string {
	if !found {
		return "absent"
	}
	return fmt.Sprintf("%.60s with id %d, until %d, away %t", f.Value, f.ID, f.Until, f.Away)
}

// readState reads all fields of a channel over HTTP.
func readState(ctx context.Context, b *testbed.Broker, channel string) (map[string]state.Shown, error) {
	fields := map[string]state.Shown{}
	for cursor := ""; ; {
		var page struct {
			Fields json.RawMessage
			Cursor string
		}
		path := fmt.Sprintf("/v1/channels/%s/state?cursor=%s", channel, url.QueryEscape(cursor))
		if err := b.Call(ctx, http.MethodGet, path, nil, &page); err != nil {
			return nil, err
		}
		shown, err := parseShownFields(page.Fields)
		if err != nil {
			return nil, err
		}
		for name, f := range shown {
			fields[name] = *f
		}
		if cursor = page.Cursor; cursor == "" {
			return fields, nil
		}
	}
}

// verifyNoOwners waits until no field has a connected owner, after all clients have left.
func (tb *bed) verifyNoOwners(ctx context.Context, s scale) error {
	var owned []string
	err := within(ctx, tb.times.cleanupBound(), 200*time.Millisecond, func() error {
		owned = nil
		for i := range s.StateRooms {
			fields, err := readState(ctx, tb.brokers[i%len(tb.brokers)], room(s, i))
			if err != nil {
				return err
			}
			for name, f := range fields {
				if _, ok := ownerOf(name); ok && !f.Away {
					owned = append(owned, fmt.Sprintf("%s in %s is not away after all clients left", name, room(s, i)))
				}
			}
		}
		if len(owned) > 0 {
			return errNotYet
		}
		return nil
	})
	if !errors.Is(err, errNotYet) {
		return err
	}
	tb.states.counts.GhostFields += len(owned)
	for _, text := range owned {
		tb.states.found.add("ghost field", "%s", text)
	}
	return nil
}
