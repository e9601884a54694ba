package hold

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
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

const (
	channelPrefix = "hold:"
	resourceField = "$resource"
	seatGroup     = "seat/"
	recordGroup   = "$$hold/"
	livePrefix    = "$$live:"
	ofPrefix      = "$$of:"
)

// State is what a hold is or was.
type State string

// The states. The last two are ends.
const (
	Held     State = "held"
	Sold     State = "sold"
	Released State = "released" // the hold or the sale was released
	Expired  State = "expired"  // the hold was not confirmed in time
)

// Hold is a hold or a sale, live or ended.
type Hold struct {
	ID       string   `json:"id"`
	Resource string   `json:"resource"`
	User     string   `json:"user,omitempty"`
	Seats    []string `json:"seats"` // the seats, or the names of the units
	State    State    `json:"state"`
	Created  int64    `json:"created"`         // Unix ms
	Until    int64    `json:"until,omitempty"` // end of a hold, Unix ms; only if Held
	Last     int64    `json:"last,omitempty"`  // the latest end that renewals can reach; only if Held
	Sold     int64    `json:"sold,omitempty"`  // time of the sale
	Ended    int64    `json:"ended,omitempty"` // time of the release or the expiry
}

// record is the value of a field $$hold/<id>.
type record struct {
	User    string   `json:"user,omitempty"`
	Seats   []string `json:"seats"`
	Units   bool     `json:"units,omitempty"` // the places have no names
	State   State    `json:"state"`           // never Expired
	Created int64    `json:"created"`
	Last    int64    `json:"last,omitempty"`
	Sold    int64    `json:"sold,omitempty"`
	Ended   int64    `json:"ended,omitempty"`
	After   int64    `json:"after"` // of Held: how long the record lives after the hold, ms
}

// until returns the end of a hold, Unix ms. The lease of its record is longer.
func (r *record) until(f *state.Field) int64 { return f.Until() - r.After }

// show returns the hold that a record describes. now is the store's clock, Unix ms.
func (r *record) show(id, resource string, f *state.Field, now int64) *Hold {
	h := &Hold{
		ID: id, Resource: resource, User: r.User, Seats: r.Seats, State: r.State, Created: r.Created, Sold: r.Sold, Ended: r.Ended,
	}
	if r.State == Held {
		if until := r.until(f); until > now {
			h.Until, h.Last = until, r.Last
		} else {
			h.State, h.Ended = Expired, until
		}
	}
	return h
}

// parseRecord parses a field $$hold/<id>.
func parseRecord(f *state.Field) (*record, error) {
	r := new(record)
	if err := json.Unmarshal(f.Value, r); err != nil {
		return nil, fmt.Errorf("record of a hold: %w", err)
	}
	return r, nil
}

// userPart returns a user as part of a field's name.
func userPart(user string) string { return kit.NamePart(user, 64) }

func recordField(id string) string     { return recordGroup + id }
func liveGroup(user string) string     { return livePrefix + userPart(user) + "/" }
func liveField(user, id string) string { return liveGroup(user) + id }
func ofGroup(user string) string       { return ofPrefix + userPart(user) + "/" }
func ofField(user, id string) string   { return ofGroup(user) + id }
func seatField(name string) string     { return seatGroup + name }

// seatValue is the value of a seat.
func seatValue(s State) []byte { return []byte(`{"s":"` + string(s) + `"}`) }

// idOf returns the id at the end of the name of a field.
func idOf(field string) string { return field[strings.LastIndexByte(field, '/')+1:] }

// checkID returns an error if id is not the id of a hold.
func checkID(id string) error { return kit.CheckID("id", id, MaxID, punctuation) }

// checkUser returns an error if user is neither empty nor the name of a user.
func checkUser(user string) error {
	if user == "" {
		return nil
	}
	return wire.CheckName("user", user)
}

// A seatRange is one element of Resource.Seats: a name, a range of numbers such as A1..A20, or *.
type seatRange struct {
	prefix   string // the name, or the text before the numbers
	from, to int    // 0 for a name
	any      bool
}

// parseSeats parses Resource.Seats.
func parseSeats(list []string) (ranges []seatRange, count int, err error) {
	for _, text := range list {
		r, err := parseSeatRange(text)
		if err != nil {
			return nil, 0, wire.Errorf(wire.BadRequest, "seats: %.80q: %v", text, err)
		}
		ranges = append(ranges, r)
		if !r.any {
			count += r.to - r.from + 1
		}
	}
	return ranges, count, nil
}

func parseSeatRange(text string) (r seatRange, err error) {
	if text == "*" {
		return seatRange{any: true}, nil
	}
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		return seatRange{prefix: text}, checkSeat(text)
	}
	if err := checkSeat(first); err != nil {
		return r, err
	}
	prefix := strings.TrimRight(first, "0123456789")
	number, found := strings.CutPrefix(last, prefix)
	if r.from, err = parseSeatNumber(first[len(prefix):]); err == nil && found {
		r.to, err = parseSeatNumber(number)
	}
	if err != nil || !found || r.to < r.from {
		return r, fmt.Errorf("a range is written as A1..A20")
	}
	r.prefix = prefix
	return r, nil
}

// parseSeatNumber parses a number from 1 on without leading zeros.
func parseSeatNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxCapacity || strconv.Itoa(n) != text {
		return 0, fmt.Errorf("%q is not a number from 1 to %d", text, MaxCapacity)
	}
	return n, nil
}

// has reports whether the range has a seat.
func (r seatRange) has(name string) bool {
	if r.any || r.to == 0 {
		return r.any || r.prefix == name
	}
	text, found := strings.CutPrefix(name, r.prefix)
	n, err := parseSeatNumber(text)
	return found && err == nil && r.from <= n && n <= r.to
}

// checkSeat returns an error if name is not the name of a seat.
func checkSeat(name string) error {
	if !kit.IsID(name, MaxSeatName, punctuation) {
		return fmt.Errorf("a name of a seat has 1 to %d characters of A-Z a-z 0-9 %s", MaxSeatName, punctuation)
	}
	return nil
}

// punctuation is what the names of seats and the ids of holds have besides letters and digits.
const punctuation = ". _ : @ -"

// places returns the names of the places that a call asks for: seats, or count units.
func (r *Resource) places(seats []string, count int) ([]string, error) {
	named := len(r.Seats) > 0
	switch {
	case named && len(seats) == 0 || named && count > 0:
		return nil, wire.Errorf(wire.BadRequest, "seats: the resource has named seats: name 1 to %d of them, without a count", MaxSeats)
	case !named && (len(seats) > 0 || count < 1):
		return nil, wire.Errorf(wire.BadRequest, "count: the resource has units: say how many, 1 to %d, without seats", MaxSeats)
	case len(seats) > MaxSeats || count > MaxSeats:
		return nil, wire.Errorf(wire.TooLarge, "one hold has at most %d places", MaxSeats)
	}
	if !named {
		return newUnits(count), nil
	}
	sorted := slices.Sorted(slices.Values(seats))
	for i, name := range sorted {
		if i > 0 && sorted[i-1] == name {
			return nil, wire.Errorf(wire.BadRequest, "seats: %.80q is there twice", name)
		}
		if checkSeat(name) != nil || !slices.ContainsFunc(r.ranges, func(s seatRange) bool { return s.has(name) }) {
			return nil, wire.Errorf(wire.NotFound, "seats: there is no seat %.80q", name)
		}
	}
	return sorted, nil
}

// newUnits returns new names of units. Random names do not repeat after a failover of the store, as
// numbers could.
func newUnits(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = strings.ToLower(rand.Text()[:12]) // 60 random bits
	}
	slices.Sort(names)
	return names
}
