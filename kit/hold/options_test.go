package hold

import (
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/broker/namespace"
)

// TestOptions checks the defaults, and the options that are refused.
func TestOptions(t *testing.T) {
	o, err := Options{}.withDefaults()
	if err != nil || o.HoldTime != 15*time.Minute || o.MaxLife != time.Hour || o.PerUser != 1 || o.Remember != 24*time.Hour ||
		*o.Read != namespace.Anyone || slices.Contains(o.Methods, "hold.confirm") || !slices.Contains(o.Methods, "hold.release") {
		t.Fatalf("the defaults are %+v, %v", o, err)
	}
	for want, o := range map[string]Options{
		"unknown method":   {Methods: []string{"hold.steal"}},
		"the hold time":    {HoldTime: -1},
		"the longest life": {HoldTime: time.Minute, MaxLife: time.Second},
		"holds per user":   {PerUser: -1},
		"time to remember": {Remember: time.Millisecond},
		"remembered holds": {Remembered: -1},
	} {
		if _, err := o.withDefaults(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

// FuzzSeatRange checks that a range has the seats that it counts.
func FuzzSeatRange(f *testing.F) {
	for _, text := range []string{"A1..A20", "box-left", "*", "1..3", "A01..A3", "A..B", "A1..", "..", "A9..A10", "r:1-5..r:1-7"} {
		f.Add(text, "A3")
	}
	f.Fuzz(func(t *testing.T, text, seat string) {
		r, err := parseSeatRange(text)
		if err != nil || r.any {
			return
		}
		if r.to == 0 {
			if !r.has(text) || r.has(text+"1") {
				t.Fatalf("%q is not the seat of %+v", text, r)
			}
			return
		}
		first, last, _ := strings.Cut(text, "..")
		if !r.has(first) || !r.has(last) || r.to-r.from >= MaxCapacity || r.has(seat) && checkSeat(seat) != nil && len(seat) <= MaxSeatName {
			t.Fatalf("%q is %+v", text, r)
		}
	})
}
