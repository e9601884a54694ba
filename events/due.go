package events

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// page is how many entries are looked at in one go.
	page = 256
	// hold is how long a claim lasts: a process that died with it delays what it claimed by as much.
	hold = 30 * time.Second
)

// DueRound looks at everything that is due. What could not be found out stays claimed, and is
// looked at again when the claim is over.
func (d *Dispatcher) DueRound(ctx context.Context) (Report, error) {
	did, err := eachShard(ctx, d.due)
	d.count(did)
	if err != nil {
		return did, fmt.Errorf("what is due: %w", err)
	}
	return did, nil
}

func (d *Dispatcher) due(ctx context.Context, shard int) (did Report, err error) {
	for err == nil && ctx.Err() == nil {
		var claims []Claim
		if claims, err = d.opts.Store.Claim(ctx, shard, page, hold); err != nil {
			break
		}
		var verdicts []Verdict
		verdicts, err = d.judge(ctx, claims) // some verdicts beside an error
		for _, v := range verdicts {
			// One after the other: what became due first is told first.
			done, failed := d.opts.Store.Settle(ctx, shard, v)
			if failed != nil {
				return did, failed
			}
			if done.Valid {
				did.Checked++
			}
			if done.Told {
				did.Told++
			}
			did.Dead += done.GivenUp
		}
		if len(claims) < page {
			break
		}
	}
	return did, err
}

// judge finds out about claims, in their order. Those about which nothing could be found out are left out.
func (d *Dispatcher) judge(ctx context.Context, claims []Claim) ([]Verdict, error) {
	var q questions
	for _, c := range claims {
		q.ask(c.Entry)
	}
	truth, err := q.answer(ctx, d.opts.Truth)
	unacknowledged, failed := d.unacknowledged(ctx, claims)
	if err == nil {
		err = failed
	}
	var verdicts []Verdict
	for i, c := range claims {
		v := Verdict{Claim: c}
		if c.Entry[:2] == watchSort {
			if unacknowledged[i] == unknown {
				continue
			}
			if unacknowledged[i] == yes {
				v.Event, v.ID = d.undelivered(c), eventID(c.Entry)
			}
		} else {
			present, known := truth[c.Entry]
			if !known {
				continue
			}
			v.Present, v.Event = present, d.presence(c.Entry, present)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, err
}

// presence is the event of a user or channel that is, or is not, there; nil when nobody wants it.
func (d *Dispatcher) presence(entry string, present bool) []byte {
	p := presence{User: entry[2:], Type: UserOffline}
	switch {
	case entry[:2] == channelSort && present:
		p = presence{Channel: entry[2:], Type: ChannelOccupied}
	case entry[:2] == channelSort:
		p = presence{Channel: entry[2:], Type: ChannelVacated}
	case present:
		p.Type = UserOnline
	}
	if !d.wants(p.Type) {
		return nil
	}
	return body(p)
}

// undelivered is the event of a watched message.
func (d *Dispatcher) undelivered(c Claim) []byte {
	var w watch
	if !d.wants(MessageUndelivered) || json.Unmarshal(c.Record, &w) != nil {
		return nil
	}
	w.Type = MessageUndelivered
	return body(w)
}

type answer int

const (
	unknown answer = iota
	yes
	no
)

// unacknowledged says of each claim of a watched message whether nobody has acknowledged it.
func (d *Dispatcher) unacknowledged(ctx context.Context, claims []Claim) ([]answer, error) {
	answers := make([]answer, len(claims))
	var group errgroup.Group
	for i, c := range claims {
		if c.Entry[:2] != watchSort {
			continue
		}
		group.Go(func() (err error) {
			answers[i], err = d.open(ctx, c.Record)
			return err
		})
	}
	return answers, group.Wait()
}

// open asks for the clients of a record until one has acknowledged.
func (d *Dispatcher) open(ctx context.Context, record []byte) (answer, error) {
	var w watch
	if json.Unmarshal(record, &w) != nil {
		return no, nil // the store has lost it: there is nothing to tell
	}
	for _, place := range w.Clients {
		done, err := d.opts.Truth.Acknowledged(ctx, place.Client, place.ID)
		switch {
		case err != nil:
			return unknown, err
		case done:
			return no, nil
		}
	}
	return yes, nil
}

// questions are users and channels, asked for together.
type questions struct{ users, channels []string }

func (q *questions) ask(entry string) {
	switch entry[:2] {
	case userSort:
		q.users = append(q.users, entry[2:])
	case channelSort:
		q.channels = append(q.channels, entry[2:])
	}
}

// answer says of each entry whether it is present; those of whom it is not known are left out.
func (q *questions) answer(ctx context.Context, truth Truth) (map[string]bool, error) {
	known := make(map[string]bool, len(q.users)+len(q.channels))
	var first error
	for _, kind := range []struct {
		sort  string
		names []string
		ask   func(context.Context, []string) ([]bool, error)
	}{{userSort, q.users, truth.Online}, {channelSort, q.channels, truth.Occupied}} {
		if len(kind.names) == 0 {
			continue
		}
		present, err := kind.ask(ctx, kind.names)
		if err == nil && len(present) != len(kind.names) {
			err = fmt.Errorf("%d answers to %d questions", len(present), len(kind.names))
		}
		if err != nil {
			first = err
			continue
		}
		for i, name := range kind.names {
			known[kind.sort+name] = present[i]
		}
	}
	return known, first
}
