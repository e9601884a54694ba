package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// PutRequest creates or changes a resource.
type PutRequest struct {
	Resource
	// Import are holds and sales that the resource gets, for instance those of your database after a
	// loss of the store. Ids that exist with the same places stay, and a hold that is imported as a
	// sale is sold.
	Import []Imported `json:"import"`
	// Durable waits until a replica has the change.
	Durable bool `json:"durable"`

	// Match is a condition on the version of the resource. An import over an existing resource needs
	// one with a version.
	Match kit.Match `json:"-" header:"If-Match,If-None-Match"`
}

// Imported is a hold or a sale.
type Imported struct {
	ID    string   `json:"id" required:"true"`
	User  string   `json:"user"`
	Seats []string `json:"seats"` // named seats
	Count int      `json:"count"` // units
	// Until is the end of a hold, Unix ms. A hold whose end has passed is not imported. Zero means a
	// sale.
	Until int64 `json:"until"`
}

// Status is a resource with the places that are taken.
type Status struct {
	Name    string `json:"resource"`
	Version int64  `json:"version"` // id of $resource
	Resource
	Sold int `json:"sold"`
	Held int `json:"held"`
	Free int `json:"free"`
}

// Put creates or changes a resource. The error is Conflict if it has another version, if more
// places than the capacity are taken, or if a place of an import is taken by another hold.
func (h *Holds) Put(ctx context.Context, resource string, req PutRequest) (*Status, error) {
	if len(req.Import) > MaxImport {
		return nil, wire.Errorf(wire.TooLarge, "import: %d holds and sales, at most %d are allowed", len(req.Import), MaxImport)
	}
	ids := make([]string, len(req.Import))
	seen := make(map[string]bool)
	for i, one := range req.Import {
		if err := errors.Join(checkID(one.ID), checkUser(one.User)); err != nil {
			return nil, inImport(i, err)
		}
		if seen[one.ID] {
			return nil, inImport(i, wire.Errorf(wire.BadRequest, "id %s is there twice", one.ID))
		}
		ids[i], seen[one.ID] = one.ID, true
	}
	version, err := kit.Retry(ctx, "resource "+resource, func() (int64, error) { return h.tryPut(ctx, resource, ids, req) })
	h.results.Count("put", &err)
	if !stored(err) {
		return nil, err
	}
	status, readErr := h.Status(ctx, resource)
	if readErr != nil {
		return nil, readErr
	}
	status.Version = version // another PUT may have followed
	return status, err
}

// tryPut makes one attempt to create or change a resource, and returns its version.
func (h *Holds) tryPut(ctx context.Context, resource string, ids []string, req PutRequest) (version int64, err error) {
	v, err := h.read(ctx, resource, ids)
	if err != nil {
		return 0, err
	}
	switch {
	case v.resource == nil && len(v.records) > 0:
		return 0, kit.ErrChanged // another resource of this name was deleted in this millisecond
	case !req.Match.Met(v.version):
		return 0, otherVersion(v)
	case req.Match.Version == 0 && v.resource != nil && len(req.Import) > 0:
		return 0, wire.Errorf(wire.BadRequest, "import: the resource exists, so If-Match with its version is needed")
	}
	next := req.Resource
	if err := next.check(h.opts, v.clock); err != nil {
		return 0, err
	}
	// Another resource of this name, which was just deleted, may have left seats for a millisecond.
	exists, most := kit.Same(resourceField, 0), 0
	if v.resource != nil {
		exists, most = kit.Same(resourceField, v.version), next.Capacity
	}
	v.resource = &next
	u := &state.Update{
		If:  []state.Condition{exists, {Field: seatGroup, Kind: state.AtMost, Max: most}},
		Ops: []state.Op{kit.Set(resourceField, &next)},
	}
	u.Keep = next.keep(v.clock)
	for i, one := range req.Import {
		if err := h.importOne(v, u, one); err != nil {
			return 0, inImport(i, err)
		}
	}
	// A new resource is in no list yet. If this process ends before its round, another one finds it.
	if err := h.opts.Index.Schedule(ctx, kit.RoundEvery, resource); err != nil {
		return 0, err
	}
	version, err = h.write(ctx, v, u, req.Durable)
	return version, h.putError(ctx, v, u, err)
}

// otherVersion returns the error for a resource whose version does not meet the condition. It is 0
// if there is no resource.
func otherVersion(v *view) error {
	return wire.Errorf(wire.Conflict, "resource %s: it has another version", v.name).With(map[string]int64{"version": v.version})
}

// putError returns the error of a PUT that the store has refused.
func (h *Holds) putError(ctx context.Context, v *view, u *state.Update, err error) error {
	refusal, ok := errors.AsType[*state.Refusal](err)
	switch {
	case !ok:
		return err
	case refusal.Err.Code == wire.Full && refusal.Max == 0 && u.If[0].Kind == state.IsAbsent:
		return kit.ErrChanged
	case refusal.Err.Code == wire.Full:
		facts := any(map[string]int{"capacity": v.resource.Capacity})
		if now, statusErr := h.Status(ctx, v.name); statusErr == nil {
			facts = now
		}
		return wire.Errorf(wire.Conflict, "resource %s: more than %d places are held and sold", v.name, v.resource.Capacity).With(facts)
	case refusal.Err.Code == wire.Conflict:
		return wire.Errorf(wire.Conflict, "import: %d of the seats are taken by other holds", len(refusal.Fields)).With(map[string][]string{"taken": namesOf(refusal)})
	}
	return err
}

// inImport returns an error whose message says in which entry of an import it is.
func inImport(i int, err error) error {
	in := func(e *wire.Error) *wire.Error {
		at := *e
		at.Message = fmt.Sprintf("import[%d]: %s", i, e.Message)
		return &at
	}
	if detailed, ok := errors.AsType[*wire.DetailedError](err); ok {
		return &wire.DetailedError{Err: in(detailed.Err), Data: detailed.Data}
	}
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return in(e)
	}
	return fmt.Errorf("import[%d]: %w", i, err)
}

// importOne adds a hold or a sale to the update of a PUT.
func (h *Holds) importOne(v *view, u *state.Update, one Imported) error {
	left := one.Until - v.clock // of a negative end it overflows
	if one.Until < 0 || left > MaxHoldTime.Milliseconds() {
		return wire.Errorf(wire.BadRequest, "until: %d is not a time, in Unix ms, within %v from now", one.Until, MaxHoldTime)
	}
	if r := v.records[one.ID]; r != nil {
		return importExisting(v, u, r, one)
	}
	places, err := v.resource.places(one.Seats, one.Count)
	if err != nil {
		return err
	}
	r := &record{User: one.User, Seats: places, Units: len(v.resource.Seats) == 0, State: Sold, Created: v.clock, Sold: v.clock}
	lease := time.Duration(0)
	if one.Until != 0 {
		if left <= 0 {
			return nil
		}
		lease = millis(left)
		r.State, r.Sold, r.After = Held, 0, h.opts.Remember.Milliseconds()
		r.Last = max(one.Until, v.clock+v.resource.maxLife(h.opts).Milliseconds())
	}
	made := h.newHold(v, one.ID, r, lease, 0)
	u.If, u.Ops = append(u.If, made.If...), append(u.Ops, made.Ops...)
	return checkUnique(u)
}

// importExisting adds the import of a hold that exists.
func importExisting(v *view, u *state.Update, r *storedRecord, one Imported) error {
	shown := v.show(r)
	if r.User != one.User || !r.isOf(one.Seats, one.Count) {
		return wire.Errorf(wire.Conflict, "id %s: it has another user or other places", r.id).With(shown)
	}
	switch {
	case shown.State == Held && one.Until == 0:
		sold := r.sell(v, shown)
		u.If, u.Ops = append(u.If, sold.If...), append(u.Ops, sold.Ops...)
	case shown.State != Held && shown.State != Sold && one.Until == 0:
		return ended(shown)
	}
	return nil
}

// checkUnique returns an error if the last operations name a field that others have: one import has
// a seat twice.
func checkUnique(u *state.Update) error {
	seen := make(map[string]bool, len(u.Ops))
	for _, op := range u.Ops {
		if seen[op.Field] {
			return wire.Errorf(wire.BadRequest, "seats: %s is there twice", idOf(op.Field))
		}
		seen[op.Field] = true
	}
	return nil
}

// Delete removes a resource with all of its holds and sales, if its version meets the condition,
// else the error is Conflict.
func (h *Holds) Delete(ctx context.Context, resource string, match kit.Match) (err error) {
	defer h.results.Count("delete", &err)
	return kit.Again(ctx, "resource "+resource, func() error {
		v, err := h.readExisting(ctx, resource, nil)
		if err != nil {
			return err
		}
		if !match.Met(v.version) {
			return otherVersion(v)
		}
		// The rest of the state ends with its keeping time, at once.
		u := &state.Update{If: []state.Condition{kit.Same(resourceField, v.version)}, Ops: []state.Op{kit.Delete(resourceField)}}
		u.Keep = time.Millisecond
		_, err = h.write(ctx, v, u, false)
		return err
	})
}
