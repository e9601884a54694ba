package hold

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/wire"
)

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
	if !isName(name, MaxSeatName) {
		return fmt.Errorf("a name of a seat has 1 to %d characters of A-Z a-z 0-9 . _ : @ -", MaxSeatName)
	}
	return nil
}

// isName reports whether text can be a part of a field's name.
func isName(text string, most int) bool {
	for i := range len(text) {
		c := text[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._:@-", c) >= 0) {
			return false
		}
	}
	return text != "" && len(text) <= most
}

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
