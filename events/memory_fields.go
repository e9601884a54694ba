package events

import (
	"context"
	"maps"
	"slices"
)

// ScheduleFields implements [Store].
func (m *Memory) ScheduleFields(_ context.Context, track bool, checks ...FieldsCheck) []error {
	errs := make([]error, len(checks))
	for i, c := range checks {
		errs[i] = m.scheduleFields(track, c)
	}
	return errs
}

func (m *Memory) scheduleFields(track bool, c FieldsCheck) error {
	s, now, unlock := m.lock(c.Shard)
	defer unlock()
	tracked, found := s.fields[c.Entry]
	switch {
	case !found && !track:
		return nil
	case !found && len(s.fields) >= m.limits.fields:
		return scheduleError(c.Entry, 0, nil)
	case !found:
		tracked = Tracked{Reported: max(0, (now-trackLookBack.Milliseconds()-epochMS)*seqsPerMS), Empty: true}
	}
	if track {
		tracked.Renewed = now
		s.fields[c.Entry] = tracked
	}
	if c.At > 0 {
		s.scheduleEarlier(c.Entry, c.At)
	}
	return nil
}

// scheduleEarlier schedules a check, unless one is scheduled for an earlier time. A claim ends, so
// that its end does not remove the check; the entry is due no later than without the call.
func (s *memoryShard) scheduleEarlier(entry string, at int64) {
	if d, found := s.due[entry]; found {
		at = min(at, d.at)
	}
	s.due[entry] = dueEntry{at: at}
}

// SettleFields implements [Store].
func (m *Memory) SettleFields(_ context.Context, shard int, r FieldsResult) (Settled, error) {
	s, now, unlock := m.lock(shard)
	defer unlock()
	d := s.due[r.Entry]
	claimed := d.claim != 0 && decimal(d.claim) == r.Token
	tracked, found := s.fields[r.Entry]
	if !found || tracked.Reported != r.Before {
		if !found && claimed {
			delete(s.due, r.Entry)
		}
		return Settled{}, nil
	}
	settled := Settled{Valid: true, Created: len(r.Events) > 0}
	for _, e := range r.Events {
		settled.DeadLettered += m.appendEvent(s, shard, now, e.ID, e.Body)
	}
	tracked.Reported, tracked.Empty = r.Reported, r.Empty
	if settled.Created {
		tracked.Renewed = now
	}
	s.fields[r.Entry] = tracked
	next := r.Next
	if next == 0 && r.Empty {
		if next = tracked.Renewed + trackIdle.Milliseconds(); next <= now {
			r.Untrack = true
		}
	}
	switch {
	case r.Untrack && claimed:
		delete(s.fields, r.Entry)
		delete(s.due, r.Entry)
	case claimed && next == 0:
		delete(s.due, r.Entry)
	case claimed:
		s.due[r.Entry] = dueEntry{at: max(next, now+recheckDelay.Milliseconds())}
	case next > 0:
		s.scheduleEarlier(r.Entry, next)
	}
	return settled, nil
}

// TrackedChannels implements [Store]. The cursor is the last entry of the previous page.
func (m *Memory) TrackedChannels(_ context.Context, shard int, cursor string, n int) (channels []TrackedChannel, next string, err error) {
	s, _, unlock := m.lock(shard)
	defer unlock()
	for _, entry := range slices.Sorted(maps.Keys(s.fields)) {
		if entry <= cursor {
			continue
		}
		if len(channels) == n {
			return channels, channels[n-1].Entry, nil
		}
		channels = append(channels, TrackedChannel{entry, s.fields[entry]})
	}
	return channels, "", nil
}
