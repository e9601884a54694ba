package hold

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"switchboard/events"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// Get returns a hold or a sale, live or ended.
func (h *Holds) Get(ctx context.Context, resource, id string) (*Hold, error) {
	v, r, err := h.readHold(ctx, resource, id)
	if err != nil {
		return nil, err
	}
	return v.show(r), nil
}

// Change says which hold an operation changes.
type Change struct {
	Resource string
	ID       string
	User     *string // if set, holds of other users are NotFound
	Durable  bool    // waits until a replica has the change
}

// Renew makes a hold last for its hold time from now on, but not beyond its longest life. It never
// shortens a hold. A hold that was sold stays as it is.
func (h *Holds) Renew(ctx context.Context, c Change) (*Hold, error) {
	return h.edit(ctx, "renew", c, func(v *view, r *storedRecord, shown *Hold) (*state.Update, error) {
		switch shown.State {
		case Sold:
			return nil, nil
		case Held:
		default:
			return nil, ended(shown)
		}
		until := min(v.clock+v.resource.holdTime(h.opts).Milliseconds(), r.Last)
		if until <= shown.Until {
			if shown.Until >= r.Last {
				return nil, wire.Errorf(wire.OutOfRange, "hold %s has reached its longest life", r.id).With(shown)
			}
			return nil, nil
		}
		lease := millis(until - v.clock)
		u := r.ifLive()
		u.Ops = []state.Op{
			{Field: recordField(r.id), Kind: state.Touch, TTL: lease + millis(r.After)},
			{Field: liveField(r.User, r.id), Kind: state.Touch, TTL: lease},
		}
		for _, name := range r.Seats {
			u.Ops = append(u.Ops, state.Op{Field: seatField(name), Kind: state.Touch, TTL: lease})
		}
		shown.Until = until
		return u, nil
	})
}

// Confirm turns a hold into a sale. Call it after your database has the sale. If it is already
// sold, nothing happens. If the hold has ended, the error is Expired, with the hold as facts.
func (h *Holds) Confirm(ctx context.Context, c Change) (*Hold, error) {
	return h.edit(ctx, "confirm", c, func(v *view, r *storedRecord, shown *Hold) (*state.Update, error) {
		switch shown.State {
		case Sold:
			return nil, nil
		case Held:
		default:
			return nil, ended(shown)
		}
		return r.sell(v, shown), nil
	})
}

// Release ends a hold or a sale. If it has ended already, nothing happens, and the result says how
// it ended.
func (h *Holds) Release(ctx context.Context, c Change) (*Hold, error) {
	return h.edit(ctx, "release", c, func(v *view, r *storedRecord, shown *Hold) (*state.Update, error) {
		u := r.ifLive()
		switch shown.State {
		case Held:
			u.Ops = append(u.Ops, state.Op{Field: liveField(r.User, r.id), Kind: state.Delete}) // with the seats
		case Sold:
			u.If = u.If[:1]
			for _, name := range r.Seats {
				u.Ops = append(u.Ops, kit.Delete(seatField(name)))
			}
		default:
			return nil, nil
		}
		released := r.record
		released.State, released.Ended, released.Last = Released, v.clock, 0
		u.Ops = append(u.Ops, state.Op{Field: recordField(r.id), Kind: state.Set, Value: kit.JSON(&released), TTL: h.opts.Remember})
		*shown = *released.show(r.id, v.name, nil, v.clock)
		return u, nil
	})
}

// ifLive returns an update without operations, with the conditions that the record has not changed,
// and that the hold is live by the store's clock.
func (r *storedRecord) ifLive() *state.Update {
	return &state.Update{If: []state.Condition{
		kit.Same(recordField(r.id), r.field.ID), {Field: liveField(r.User, r.id), Kind: state.Exists},
	}}
}

// sell returns the update that turns a live hold into a sale, and changes shown. The seats become
// parts of the record, so that they do not end with $$live:….
func (r *storedRecord) sell(v *view, shown *Hold) *state.Update {
	u := r.ifLive()
	sold := r.record
	sold.State, sold.Sold, sold.Last, sold.After = Sold, v.clock, 0, 0
	u.Ops = []state.Op{
		{Field: recordField(r.id), Kind: state.Set, Value: kit.JSON(&sold)},
		{Field: liveField(r.User, r.id), Kind: state.Delete},
	}
	for _, name := range r.Seats {
		u.Ops = append(u.Ops, state.Op{Field: seatField(name), Kind: state.Set, Value: seatValue(Sold), Parent: recordField(r.id)})
	}
	*shown = *sold.show(r.id, v.name, nil, v.clock)
	return u
}

// edit reads a hold, and writes the update that decide returns; nil means that nothing is to be
// done. decide changes the hold that it receives to that after the update.
func (h *Holds) edit(
	ctx context.Context, operation string, c Change, decide func(*view, *storedRecord, *Hold) (*state.Update, error),
) (_ *Hold, err error) {
	defer h.results.Count(operation, &err)
	return kit.Retry(ctx, "resource "+c.Resource, func() (*Hold, error) {
		v, r, err := h.readHold(ctx, c.Resource, c.ID)
		if err != nil {
			return nil, err
		}
		if c.User != nil && r.User != *c.User {
			return nil, wire.Errorf(wire.NotFound, "resource %s: there is no hold %s", c.Resource, c.ID)
		}
		shown := v.show(r)
		u, err := decide(v, r, shown)
		switch {
		case err != nil:
			return nil, err
		case u == nil:
			err = h.sync(ctx, v, c.Durable)
		default:
			err = h.change(ctx, v, u, c.Durable)
		}
		if !stored(err) {
			return nil, err
		}
		return shown, err
	})
}

// ExpiredEvent is the event of a hold that was not confirmed in time.
type ExpiredEvent struct {
	Type     events.Kind `json:"type"` // events.HoldExpired
	Resource string      `json:"resource"`
	Hold     string      `json:"hold"` // the id
	User     string      `json:"user,omitempty"`
	Seats    []string    `json:"seats"`
}

// Events returns a function for events.Options.Translate. It makes an ExpiredEvent of each hold
// that has expired. The record of the hold, which lives longer, has the user and the seats. They
// are missing if the record was forgotten or the resource was deleted meanwhile.
func Events(reader kit.StateReader) events.Translate {
	return func(ctx context.Context, channel string, messages []events.EndedMessage) ([]events.OwnEvent, bool, error) {
		resource, ours := strings.CutPrefix(channel, channelPrefix)
		if !ours {
			return nil, false, nil
		}
		var list []events.OwnEvent
		var records []string
		for _, m := range messages {
			for field := range m.Gone {
				if strings.HasPrefix(field, livePrefix) {
					e := &ExpiredEvent{Type: events.HoldExpired, Resource: resource, Hold: idOf(field), Seats: []string{}}
					list = append(list, events.OwnEvent{Kind: e.Type, Message: m.ID, Name: e.Hold, Body: e})
					records = append(records, recordField(e.Hold))
				}
			}
		}
		if len(list) == 0 {
			return nil, true, nil
		}
		slices.SortFunc(list, func(a, b events.OwnEvent) int { // the same order in a repeated call
			return strings.Compare(fmt.Sprint(a.Message, a.Name), fmt.Sprint(b.Message, b.Name))
		})
		return list, true, addFacts(ctx, reader, channel, records, list)
	}
}

// addFacts adds the users and the seats of the records to the events.
func addFacts(ctx context.Context, reader kit.StateReader, channel string, records []string, list []events.OwnEvent) error {
	page, err := kit.ReadState(ctx, reader, queue.StateRead{Channel: channel, Fields: records})
	if err != nil {
		return err
	}
	byID := make(map[string]*record)
	for _, f := range page.Fields {
		if r, err := parseRecord(f.Field); err == nil {
			byID[idOf(f.Name)] = r
		}
	}
	for _, own := range list {
		e := own.Body.(*ExpiredEvent)
		if r := byID[e.Hold]; r != nil {
			e.User, e.Seats = r.User, r.Seats
		}
	}
	return nil
}
