package events

import "context"

// settleFields checks the claims of tracked channels. A channel whose state could not be found out
// stays claimed.
func (d *Dispatcher) settleFields(ctx context.Context, shard int, claims []Claim, report *Report) error {
	results, err := d.checkFields(ctx, claims)
	for _, r := range results {
		settled, settleErr := d.opts.Store.SettleFields(ctx, shard, r)
		if settleErr != nil {
			return settleErr
		}
		if settled.Valid {
			report.Checked++
			report.Created += len(r.Events)
		}
		report.DeadLettered += settled.DeadLettered
	}
	return err
}

// checkFields returns the results for claims, in their order. It omits claims whose state could not
// be found out, and returns the error of one of them.
func (d *Dispatcher) checkFields(ctx context.Context, claims []Claim) (results []FieldsResult, err error) {
	if len(claims) == 0 {
		return nil, nil
	}
	checked, positions := make([]Claim, 0, len(claims)), make([]FieldsPosition, 0, len(claims))
	for _, c := range claims {
		tracked, parseErr := parseTracked(string(c.Record))
		switch {
		case parseErr != nil: // the store has lost the record
			results = append(results, FieldsResult{Claim: Claim{Entry: c.Entry, Token: c.Token}})
		case !d.wants(endKinds...):
			results = append(results, FieldsResult{Claim: c, Before: tracked.Reported, Reported: tracked.Reported, Untrack: true})
		default:
			checked, positions = append(checked, c), append(positions, FieldsPosition{c.Entry[2:], tracked.Reported})
		}
	}
	if len(checked) == 0 {
		return results, nil
	}
	for i, ended := range d.opts.Truth.EndFields(ctx, positions) {
		if ended.Err != nil {
			err = ended.Err
			continue
		}
		result := fieldsResult(checked[i], positions[i], ended)
		var translateErr error
		if result.Events, translateErr = d.endedEvents(ctx, positions[i].Channel, ended.Messages); translateErr != nil {
			err = translateErr
			continue
		}
		results = append(results, result)
	}
	return results, err
}

// fieldsResult returns the result for a claim, without its events.
func fieldsResult(c Claim, position FieldsPosition, ended EndedFields) FieldsResult {
	r := FieldsResult{Claim: c, Before: position.After, Reported: max(position.After, ended.Upto), Empty: ended.Empty, Next: ended.Due}
	if ended.Last > r.Reported { // the channel was not empty in between, perhaps
		r.Empty = false
	}
	if ended.More {
		r.Next = 1
	}
	return r
}

// sweepFields takes the next page of the tracked channels of a shard, and schedules their checks.
func (d *Dispatcher) sweepFields(ctx context.Context, shard int) (report Report, err error) {
	if !d.wants(endKinds...) {
		return report, nil
	}
	tracked, next, err := d.opts.Store.TrackedChannels(ctx, shard, d.tracked[shard], pageSize)
	if err != nil {
		return report, err
	}
	channels := make([]string, len(tracked))
	for i, t := range tracked {
		channels[i] = t.channel()
	}
	var checks []FieldsCheck
	for i, state := range d.opts.Truth.Fields(ctx, channels) {
		if state.Err != nil {
			err = state.Err
		} else if at := nextCheck(tracked[i].Tracked, state); at > 0 {
			checks = append(checks, FieldsCheck{Check{shard, tracked[i].Entry}, at})
		}
	}
	for i, scheduleErr := range d.opts.Store.ScheduleFields(ctx, false, checks...) {
		if scheduleErr != nil {
			return report, scheduleErr
		}
		if checks[i].At == 1 {
			report.Checked++
		}
	}
	if err == nil { // after an error, the next round repeats the page
		d.tracked[shard] = next
	}
	return report, err
}

// nextCheck returns the time at which a tracked channel must be checked, Unix ms: 1 for now, 0 for
// no time.
func nextCheck(t Tracked, state FieldsState) int64 {
	switch {
	case state.Last > t.Reported: // perhaps a message about fields that have ended
		return 1
	case state.Empty && !t.Empty: // the time of keeping the state has ended
		return 1
	case state.Due > 0:
		return state.Due
	case state.Empty:
		return t.Renewed + trackIdle.Milliseconds() // the check ends the tracking
	}
	return 0
}
