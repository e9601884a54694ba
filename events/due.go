package events

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// pageSize is how many entries are checked at a time.
	pageSize = 256
	// claimTTL is how long a claim lasts. If a process dies, its claimed entries wait for that
	// long.
	claimTTL = 30 * time.Second
)

// DueRound checks all due entries. An entry whose state could not be found out stays claimed. It
// is checked again when the claim expires.
func (d *Dispatcher) DueRound(ctx context.Context) (Report, error) {
	report, err := eachShard(ctx, d.checkDue)
	d.count(report)
	if err != nil {
		return report, fmt.Errorf("check due entries: %w", err)
	}
	return report, nil
}

func (d *Dispatcher) checkDue(ctx context.Context, shard int) (report Report, err error) {
	for err == nil && ctx.Err() == nil {
		var claims, fields []Claim
		if claims, err = d.opts.Store.Claim(ctx, shard, pageSize, claimTTL); err != nil {
			break
		}
		n := len(claims)
		claims, fields = splitClaims(claims)
		err = d.settle(ctx, shard, claims, &report)
		if fieldsErr := d.settleFields(ctx, shard, fields, &report); err == nil {
			err = fieldsErr
		}
		if n < pageSize {
			break
		}
	}
	return report, err
}

// splitClaims splits claims into those of tracked channels and the other ones.
func splitClaims(claims []Claim) (others, fields []Claim) {
	for _, c := range claims {
		if c.Entry[:2] == fieldsPrefix {
			fields = append(fields, c)
		} else {
			others = append(others, c)
		}
	}
	return others, fields
}

// settle checks the claims of users, channels and messages.
func (d *Dispatcher) settle(ctx context.Context, shard int, claims []Claim, report *Report) error {
	results, err := d.check(ctx, claims) // may return results with an error
	for _, r := range results {
		// Sequential, so that the events are in the order in which the entries became due.
		settled, settleErr := d.opts.Store.Settle(ctx, shard, r)
		if settleErr != nil {
			return settleErr
		}
		if settled.Valid {
			report.Checked++
		}
		if settled.Created {
			report.Created++
		}
		report.DeadLettered += settled.DeadLettered
	}
	return err
}

// check returns the results for claims, in their order. It omits claims whose state could not be
// found out.
func (d *Dispatcher) check(ctx context.Context, claims []Claim) ([]CheckResult, error) {
	var q presenceQuery
	for _, c := range claims {
		q.add(c.Entry)
	}
	states, err := q.run(ctx, d.opts.Truth)
	acks, ackErr := d.ackStates(ctx, claims)
	if err == nil {
		err = ackErr
	}
	var results []CheckResult
	for i, c := range claims {
		r := CheckResult{Claim: c}
		if c.Entry[:2] == deadlinePrefix {
			if acks[i] == ackUnknown {
				continue
			}
			if acks[i] == unacknowledged {
				r.Event, r.ID = d.deadlineBody(c), eventID(c.Entry)
			}
		} else {
			present, known := states[c.Entry]
			if !known {
				continue
			}
			r.Present, r.Event = present, d.presenceBody(c.Entry, present)
		}
		results = append(results, r)
	}
	return results, err
}

// presenceBody returns the event for a user or channel that is now present or absent. It returns
// nil if that kind of event is not wanted.
func (d *Dispatcher) presenceBody(entry string, present bool) []byte {
	p := presenceEvent{User: entry[2:], Type: UserOffline}
	switch {
	case entry[:2] == channelPrefix && present:
		p = presenceEvent{Channel: entry[2:], Type: ChannelOccupied}
	case entry[:2] == channelPrefix:
		p = presenceEvent{Channel: entry[2:], Type: ChannelVacated}
	case present:
		p.Type = UserOnline
	}
	if !d.wants(p.Type) {
		return nil
	}
	return body(p)
}

// deadlineBody returns the event for a message that was not acknowledged in time, or the event of
// an Emit. It returns nil if such events are not wanted or the record is not valid.
func (d *Dispatcher) deadlineBody(c Claim) []byte {
	var e emittedType
	if json.Unmarshal(c.Record, &e) == nil && e.Type != "" {
		if !d.wants(e.Type) {
			return nil
		}
		return c.Record[1:]
	}
	var u undeliveredEvent
	if !d.wants(MessageUndelivered) || json.Unmarshal(c.Record, &u) != nil {
		return nil
	}
	u.Type = MessageUndelivered
	return body(u)
}

type ackState int

const (
	ackUnknown ackState = iota
	unacknowledged
	acknowledged
)

// ackStates returns the state of each claimed message. It is ackUnknown for users and channels.
func (d *Dispatcher) ackStates(ctx context.Context, claims []Claim) ([]ackState, error) {
	states := make([]ackState, len(claims))
	var group errgroup.Group
	for i, c := range claims {
		if c.Entry[:2] != deadlinePrefix {
			continue
		}
		group.Go(func() (err error) {
			states[i], err = d.ackState(ctx, c.Record)
			return err
		})
	}
	return states, group.Wait()
}

// ackState queries the clients in a record until it finds one that has acknowledged the message.
func (d *Dispatcher) ackState(ctx context.Context, record []byte) (ackState, error) {
	var u undeliveredEvent
	if json.Unmarshal(record, &u) != nil {
		return acknowledged, nil // the store has lost the record, so there is no event to create
	}
	for _, m := range u.Clients {
		done, err := d.opts.Truth.Acknowledged(ctx, m.Client, m.ID)
		switch {
		case err != nil:
			return ackUnknown, err
		case done:
			return acknowledged, nil
		}
	}
	return unacknowledged, nil
}

// A presenceQuery asks for the presence of many users and channels at once.
type presenceQuery struct{ users, channels []string }

func (q *presenceQuery) add(entry string) {
	switch entry[:2] {
	case userPrefix:
		q.users = append(q.users, entry[2:])
	case channelPrefix:
		q.channels = append(q.channels, entry[2:])
	}
}

// run returns for each entry whether it is present. Entries whose state is unknown are missing.
func (q *presenceQuery) run(ctx context.Context, truth Truth) (map[string]bool, error) {
	states := make(map[string]bool, len(q.users)+len(q.channels))
	var lastErr error
	for _, kind := range []struct {
		prefix string
		names  []string
		query  func(context.Context, []string) ([]bool, error)
	}{{userPrefix, q.users, truth.Online}, {channelPrefix, q.channels, truth.Occupied}} {
		if len(kind.names) == 0 {
			continue
		}
		present, err := kind.query(ctx, kind.names)
		if err == nil && len(present) != len(kind.names) {
			err = fmt.Errorf("query of %d users or channels: %d results", len(kind.names), len(present))
		}
		if err != nil {
			lastErr = err
			continue
		}
		for i, name := range kind.names {
			states[kind.prefix+name] = present[i]
		}
	}
	return states, lastErr
}
