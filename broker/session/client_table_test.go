package session

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestRosterIsAMap compares it with a map while it grows and shrinks.
func TestRosterIsAMap(t *testing.T) {
	r, want := newRoster(), map[string]*Session{}
	rng := rand.New(rand.NewPCG(1, 2))
	for step := range 20_000 {
		name := fmt.Sprint("c-", rng.IntN(2_000))
		if growing := step/5_000%2 == 0; rng.IntN(10) < 7 == growing {
			s := &Session{client: name}
			r.put(s)
			want[name] = s
		} else {
			r.remove(name)
			delete(want, name)
		}
		if r.count != len(want) {
			t.Fatalf("step %d: %d sessions, want %d", step, r.count, len(want))
		}
		if got := r.get(name); got != want[name] {
			t.Fatalf("step %d: %s is %p, want %p", step, name, got, want[name])
		}
		if step%100 != 0 {
			continue
		}
		for i := range 2_000 {
			name := fmt.Sprint("c-", i)
			if got := r.get(name); got != want[name] {
				t.Fatalf("step %d: %s is %p, want %p", step, name, got, want[name])
			}
		}
	}
	for name := range want {
		r.remove(name)
	}
	if r.count != 0 || len(r.slots) != fewestSlots {
		t.Errorf("%d sessions in %d slots are left, want none in %d", r.count, len(r.slots), fewestSlots)
	}
}

func BenchmarkRoster(b *testing.B) {
	r := newRoster()
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprint("bench-", i))
		r.put(&Session{client: names[i]})
	}
	for i := 0; b.Loop(); i++ {
		if r.get(names[i%len(names)]) == nil {
			b.Fatal("lost")
		}
	}
}
