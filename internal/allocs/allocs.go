// Package allocs counts the allocations of hot functions and fails a test if there are more than
// expected. Such counts do not depend on the machine. `make test` runs these tests separately
// without the race detector, which allocates too.
package allocs

import (
	"fmt"
	"testing"
)

// A Case is one hot function.
type Case struct {
	Name string
	Most int    // largest number of allocations of one call
	Do   func() // calls the function once
}

// Of returns a Case. One call of do may allocate at most most times.
func Of(name string, most int, do func()) Case { return Case{name, most, do} }

const runs = 200 // calls per measurement

// Test checks the allocations of every case. With the race detector it only calls the functions.
func Test(t *testing.T, cases []Case) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if raceDetector {
				c.Do()
				return
			}
			if err := check(c); err != nil {
				t.Error(err)
			}
		})
	}
}

// check returns an error if c allocates too often.
func check(c Case) error {
	// The average is rounded down, so occasional growth of a slice or map does not count.
	got := testing.AllocsPerRun(runs, c.Do)
	if int(got) > c.Most {
		return fmt.Errorf("%d allocations, want at most %d", int(got), c.Most)
	}
	return nil
}

// Bench benchmarks every case.
func Bench(b *testing.B, cases []Case) {
	for _, c := range cases {
		b.Run(c.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Do()
			}
		})
	}
}
