package state

import (
	"fmt"
	"runtime"
	"testing"
)

// filled returns a state with n fields in four groups, as a resource of holds has.
func filled(tb testing.TB, n int) *State {
	s, now := New(), int64(1000)
	for i := range n {
		now++
		name := fmt.Sprintf("%s/%06d", []string{"seat", "$$hold", "$$live", "$$of"}[i%4], i*7919%n)
		op := Op{Field: name, Kind: Set, Value: []byte(`{"s":1}`)}
		if _, err := s.Apply(&Update{Ops: []Op{op}, Writer: BackendHolder}, now, func() int64 { return now }); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// sizes are numbers of fields: of a session, up to a resource of holds with all places taken.
var sizes = []int{1, 8, 64, 1024, 40_000}

// BenchmarkRead reads a page of 64 fields, and a group without fields.
func BenchmarkRead(b *testing.B) {
	for _, n := range sizes {
		s := filled(b, n)
		b.Run(fmt.Sprintf("page/%d", n), func(b *testing.B) {
			for b.Loop() {
				s.Read(1, "seat/", "seat/000003", 64, 0)
			}
		})
		b.Run(fmt.Sprintf("absent/%d", n), func(b *testing.B) {
			for b.Loop() {
				s.Read(1, "$$of:amy/", "", 64, 0)
			}
		})
		b.Run(fmt.Sprintf("get/%d", n), func(b *testing.B) {
			for b.Loop() {
				s.Get(1, "seat/000000")
			}
		})
	}
}

// BenchmarkGroup adds a field to a group with a limit, and removes it.
func BenchmarkGroup(b *testing.B) {
	for _, n := range sizes {
		s := filled(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			now := int64(1 << 40)
			for b.Loop() {
				for _, op := range []Op{{Field: "seat/x", Kind: Set, Value: []byte("1"), GroupMax: 1 << 20}, {Field: "seat/x", Kind: Delete}} {
					now++
					if _, err := s.Apply(&Update{Ops: []Op{op}, Writer: BackendHolder}, now, func() int64 { return now }); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkMemory reports the bytes of a field in memory, with the name and the value. It measures
// once, and no time.
func BenchmarkMemory(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			count := 80_000 / n
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			all := make([]*State, count)
			for i := range all {
				all[i] = filled(b, n)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(all)
			for b.Loop() { // a benchmark must loop
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(count*n), "B/field")
		})
	}
}
