package hold

import (
	"encoding/json"
	"time"

	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// Resource is what can be held: the value of the field $resource. Clients that may read the channel
// see it.
type Resource struct {
	// Capacity is the most places that are held or sold at a time, 1 to MaxCapacity. Zero means the
	// number of Seats.
	Capacity int `json:"capacity"`
	// Seats are the names of the seats. An element is a name, such as box-left, or a range, such as
	// A1..A20. The element * allows any name; then clients can invent seats, up to the capacity.
	// Without Seats, the resource has units without names.
	Seats []string `json:"seats,omitempty"`
	// HoldMS, MaxLifeMS and PerUser are Options.HoldTime and so on, in milliseconds, for this
	// resource. Zero means the option.
	HoldMS    int64 `json:"hold_ms,omitempty"`
	MaxLifeMS int64 `json:"max_life_ms,omitempty"`
	PerUser   int   `json:"per_user,omitempty"`
	// Ends is when the resource is removed with all holds and sales, Unix ms. Zero means never.
	Ends int64 `json:"ends,omitempty"`
	// Data is any JSON, at most 4 KiB.
	Data json.RawMessage `json:"data,omitempty"`

	ranges []seatRange // Seats
}

// check checks the resource, and fills Capacity and the ranges. now is the store's clock, Unix ms.
func (r *Resource) check(o Options, now int64) (err error) {
	count := 0
	if r.ranges, count, err = parseSeats(r.Seats); err != nil {
		return err
	}
	open := false // any name is a seat
	for _, s := range r.ranges {
		open = open || s.any
	}
	if r.Capacity == 0 && !open {
		r.Capacity = count
	}
	bad := func(format string, args ...any) error { return wire.Errorf(wire.BadRequest, format, args...) }
	longest := MaxHoldTime.Milliseconds()
	switch {
	case r.Capacity == 0:
		return bad("capacity: it is missing, and there are no seats with fixed names")
	case r.Capacity < 1 || r.Capacity > MaxCapacity:
		return bad("capacity: %d is not within 1 and %d", r.Capacity, MaxCapacity)
	case len(r.Seats) > 0 && !open && r.Capacity > count:
		return bad("capacity: %d is above the number of seats, %d", r.Capacity, count)
	case r.HoldMS < 0 || r.HoldMS > longest || r.MaxLifeMS < 0 || r.MaxLifeMS > longest:
		return bad("hold_ms and max_life_ms: at most %d are allowed", longest)
	case r.MaxLifeMS > 0 && r.MaxLifeMS < r.holdTime(o).Milliseconds():
		return bad("max_life_ms: %d is below the hold time, %d", r.MaxLifeMS, r.holdTime(o).Milliseconds())
	case r.PerUser < 0 || r.PerUser > MaxCapacity:
		return bad("per_user: %d is not within 1 and %d", r.PerUser, MaxCapacity)
	case r.Ends != 0 && r.Ends <= now:
		return bad("ends: %d is in the past", r.Ends)
	case r.Ends-now > maxEnds.Milliseconds():
		return bad("ends: %d is not a time, in Unix ms, within %d years", r.Ends, maxEnds/(365*24*time.Hour))
	}
	if len(r.Data) > 0 {
		r.Data, err = payload.Compact(r.Data, maxData)
	}
	return err
}

func (r *Resource) holdTime(o Options) time.Duration {
	if r.HoldMS > 0 {
		return time.Duration(r.HoldMS) * time.Millisecond
	}
	return o.HoldTime
}

// maxLife is at least holdTime.
func (r *Resource) maxLife(o Options) time.Duration {
	if r.MaxLifeMS > 0 {
		return time.Duration(r.MaxLifeMS) * time.Millisecond
	}
	return max(o.MaxLife, r.holdTime(o))
}

func (r *Resource) perUser(o Options) int {
	if r.PerUser > 0 {
		return r.PerUser
	}
	return o.PerUser
}

// keep returns state.Limits.Keep. now is the store's clock, Unix ms.
func (r *Resource) keep(now int64) time.Duration {
	if r.Ends == 0 {
		return 0
	}
	return max(time.Duration(r.Ends-now)*time.Millisecond, time.Millisecond)
}

// parseResource parses the field $resource.
func parseResource(f *state.Field) (*Resource, error) {
	r := new(Resource)
	if err := json.Unmarshal(f.Value, r); err != nil {
		return nil, err
	}
	var err error
	r.ranges, _, err = parseSeats(r.Seats)
	return r, err
}

// channelOf returns the channel of a resource.
func channelOf(resource string) (string, error) {
	if err := wire.CheckName("resource", resource); err != nil {
		return "", err
	}
	if len(resource) > maxResource {
		return "", wire.Errorf(wire.BadRequest, "resource: the name has %d bytes, at most %d are allowed", len(resource), maxResource)
	}
	return channelPrefix + resource, nil
}
