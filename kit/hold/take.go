package hold

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// TakeRequest asks for places.
type TakeRequest struct {
	// ID identifies the hold or the sale. A repeated call with the same id returns the same hold. ""
	// means a new id; such a call must not be repeated after an error, because it may have succeeded.
	ID string `json:"id"`
	// Key identifies the call instead of ID: the id is made from the user and the key.
	Key  string `json:"key"`
	User string `json:"user"` // "" means none
	// Seats are named seats. Count is a number of units, if the resource has no named seats.
	Seats []string `json:"seats"`
	Count int      `json:"count"`
	// HoldMS is how long the hold lasts, at most the longest life, ms. Zero means the hold time of the
	// resource.
	HoldMS int64 `json:"hold_ms"`
	// Durable waits until a replica has the change.
	Durable bool `json:"durable"`

	shorterOnly bool // HoldMS may only be below the hold time of the resource
}

// Hold holds all of the places, or none.
func (h *Holds) Hold(ctx context.Context, resource string, req TakeRequest) (_ *Hold, err error) {
	defer h.results.Count("hold", &err)
	return h.take(ctx, resource, Held, req)
}

// Sell sells places without a hold.
func (h *Holds) Sell(ctx context.Context, resource string, req TakeRequest) (_ *Hold, err error) {
	defer h.results.Count("sell", &err)
	return h.take(ctx, resource, Sold, req)
}

func (h *Holds) take(ctx context.Context, resource string, as State, req TakeRequest) (*Hold, error) {
	if err := kit.CheckKey(req.ID, req.Key); err != nil {
		return nil, err
	}
	req.ID = kit.NewID(req.ID, req.User, req.Key, strings.ToLower(rand.Text()))
	if err := errors.Join(checkID(req.ID), checkUser(req.User)); err != nil {
		return nil, err
	}
	if req.HoldMS < 0 || req.HoldMS > MaxHoldTime.Milliseconds() || as == Sold && req.HoldMS != 0 {
		return nil, wire.Errorf(wire.BadRequest, "hold_ms: %d is not a hold time", req.HoldMS)
	}
	return kit.Retry(ctx, "resource "+resource, func() (*Hold, error) { return h.tryTake(ctx, resource, as, req) })
}

// tryTake makes one attempt to hold or to sell places.
func (h *Holds) tryTake(ctx context.Context, resource string, as State, req TakeRequest) (*Hold, error) {
	var more []queue.StateRead
	if req.User != "" {
		more = []queue.StateRead{{Prefix: ofGroup(req.User), Limit: h.opts.Remembered + MaxSeats}}
	}
	v, err := h.readExisting(ctx, resource, []string{req.ID}, more...)
	if err != nil {
		return nil, err
	}
	if r := v.records[req.ID]; r != nil {
		return h.repeat(ctx, v, r, as, req)
	}
	places, err := v.resource.places(req.Seats, req.Count)
	if err != nil {
		return nil, err
	}
	r := &record{User: req.User, Seats: places, Units: len(v.resource.Seats) == 0, State: as, Created: v.clock}
	lease := time.Duration(0)
	if as == Held {
		life := v.resource.maxLife(h.opts)
		if lease = v.resource.holdTime(h.opts); req.HoldMS > 0 {
			if !req.shorterOnly {
				lease = life
			}
			lease = min(millis(req.HoldMS), lease)
		}
		r.Last, r.After = v.clock+life.Milliseconds(), h.opts.Remember.Milliseconds()
	} else {
		r.Sold = v.clock
	}
	u := h.newHold(v, req.ID, r, lease, v.resource.perUser(h.opts))
	if err := h.forget(ctx, v, u); err != nil {
		return nil, err
	}
	if err = h.change(ctx, v, u, req.Durable); !stored(err) {
		return nil, takeError(v, r, err)
	}
	made := &Hold{ID: req.ID, Resource: resource, User: r.User, Seats: r.Seats, State: as, Created: r.Created, Last: r.Last, Sold: r.Sold}
	if as == Held {
		made.Until = v.clock + lease.Milliseconds()
	}
	return made, err
}

// newHold returns the update that makes a hold or a sale. perUser is the most holds of the user, 0
// for no limit.
func (h *Holds) newHold(v *view, id string, r *record, lease time.Duration, perUser int) *state.Update {
	u := &state.Update{If: []state.Condition{kit.Same(recordField(id), 0)}}
	recordLease, parent := time.Duration(0), recordField(id)
	if r.State == Held {
		recordLease, parent = lease+millis(r.After), liveField(r.User, id)
		live := state.Op{Field: parent, Kind: state.Set, Value: []byte("1"), TTL: lease}
		if r.User != "" {
			live.GroupMax = perUser
		}
		u.Ops = append(u.Ops, live)
	}
	u.Ops = append(u.Ops, state.Op{Field: recordField(id), Kind: state.Set, Value: kit.JSON(r), TTL: recordLease})
	if r.User != "" {
		created := strconv.AppendInt(nil, r.Created, 10)
		u.Ops = append(u.Ops, state.Op{Field: ofField(r.User, id), Kind: state.Set, Value: created, Parent: recordField(id)})
	}
	for _, name := range r.Seats {
		u.If = append(u.If, kit.Same(seatField(name), 0))
		u.Ops = append(u.Ops, state.Op{
			Field: seatField(name), Kind: state.Set, Value: seatValue(r.State), TTL: lease, Parent: parent, GroupMax: v.resource.Capacity,
		})
	}
	return u
}

// repeat answers a call whose id exists.
func (h *Holds) repeat(ctx context.Context, v *view, r *storedRecord, as State, req TakeRequest) (*Hold, error) {
	shown := v.show(r)
	same := r.User == req.User && r.isOf(req.Seats, req.Count)
	switch {
	case r.User != req.User: // the facts are for the user alone
		return nil, wire.Errorf(wire.Conflict, "id %s: it is in use", req.ID)
	case shown.State == Expired || shown.State == Released:
		return nil, ended(shown)
	case !same:
		return nil, wire.Errorf(wire.Conflict, "id %s: it has other places", req.ID).With(shown)
	case as == Sold && shown.State == Held:
		return nil, wire.Errorf(wire.Conflict, "id %s: it is a hold; confirm it", req.ID).With(shown)
	}
	if err := h.sync(ctx, v, req.Durable); err != nil {
		return shown, err
	}
	return shown, nil
}

// isOf reports whether a call asks for the places of the record.
func (r *record) isOf(seats []string, count int) bool {
	if r.Units {
		return len(seats) == 0 && count == len(r.Seats)
	}
	return count == 0 && slices.Equal(slices.Sorted(slices.Values(seats)), r.Seats)
}

// ended returns the error of a hold that has ended, with the facts.
func ended(h *Hold) error {
	what := "hold %s has expired"
	if h.State == Released {
		what = "hold %s was released"
	}
	return wire.Errorf(wire.Expired, what, h.ID).With(h)
}

// takeError returns the error of a hold that the store has refused.
func takeError(v *view, r *record, err error) error {
	refusal, ok := errors.AsType[*state.Refusal](err)
	switch {
	case !ok:
		return err
	case refusal.Err.Code == wire.Full && refusal.Group == seatGroup:
		return wire.Errorf(wire.Full, "resource %s: fewer than %d places are free", v.name, len(r.Seats)).With(map[string]int{"capacity": v.resource.Capacity})
	case refusal.Err.Code == wire.Full:
		return wire.Errorf(wire.Conflict, "user %s already has %d holds of %s", r.User, refusal.Max, v.name).With(map[string][]string{"holds": namesOf(refusal)})
	case refusal.Err.Code == wire.Conflict && r.Units:
		return kit.ErrChanged // a random name is in use
	case refusal.Err.Code == wire.Conflict:
		return wire.Errorf(wire.Conflict, "resource %s: %d of the seats are not free", v.name, len(refusal.Fields)).With(map[string][]string{"taken": namesOf(refusal)})
	}
	return err
}

// namesOf returns the ends of the names of a refusal's fields.
func namesOf(r *state.Refusal) []string {
	var names []string
	for field := range r.Fields {
		names = append(names, idOf(field))
	}
	slices.Sort(names)
	return names
}

// forget adds to an update that the oldest ended holds of the user are forgotten, if there are too
// many. The read of the view has the ids of the user.
func (h *Holds) forget(ctx context.Context, v *view, u *state.Update) error {
	if len(v.read.Value.Fields) <= h.opts.Remembered {
		return nil
	}
	ids := make([]string, 0, len(v.read.Value.Fields))
	created := make(map[string]int64)
	for _, f := range v.read.Value.Fields {
		id, at := idOf(f.Name), int64(0)
		if err := json.Unmarshal(f.Value, &at); err != nil {
			return err
		}
		ids, created[id] = append(ids, id), at
	}
	read, err := h.read(ctx, v.name, ids)
	if err != nil {
		return err
	}
	slices.SortFunc(ids, func(a, b string) int { return int(created[a] - created[b]) })
	over := len(ids) - h.opts.Remembered
	for _, id := range ids {
		r := read.records[id]
		if over <= 0 || r == nil || r.State == Sold || read.live(r) {
			continue
		}
		u.If = append(u.If, kit.Same(recordField(id), r.field.ID))
		u.Ops = append(u.Ops, kit.Delete(recordField(id)))
		over--
	}
	return nil
}
