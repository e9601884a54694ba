// Package allocs measures hot functions, and fails a test when one allocates more often than its table says: such
// counts do not depend on the machine. `make test` counts in a run of its own, since the race detector
// allocates as well.
package allocs

import (
	"fmt"
	"testing"
)

// Case is one hot function.
type Case struct {
	Name string
	Most int    // allocations of one call
	Do   func() // one call
}

// Of is a case: most is how often one call of do may allocate.
func Of(name string, most int, do func()) Case { return Case{name, most, do} }

const runs = 200

// Test counts the allocations of every case. With the race detector it only calls them.
func Test(t *testing.T, cases []Case) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if raceDetector {
				c.Do()
				return
			}
			if verdict := count(c); verdict != "" {
				t.Error(verdict)
			}
		})
	}
}

// count says what is wrong with c, or nothing.
func count(c Case) string {
	got := testing.AllocsPerRun(runs, c.Do) // a whole number, rounded down: what grows now and then is shared by many
	if int(got) > c.Most {
		return fmt.Sprintf("%d allocations, at most %d are in the table", int(got), c.Most)
	}
	return ""
}

// Bench measures every case.
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
