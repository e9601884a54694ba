package session

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestClientTable compares a table with a map while it grows and shrinks.
func TestClientTable(t *testing.T) {
	table, want := newClientTable(), map[string]*Session{}
	rng := rand.New(rand.NewPCG(1, 2))
	for step := range 20_000 {
		name := fmt.Sprint("c-", rng.IntN(2_000))
		if growing := step/5_000%2 == 0; rng.IntN(10) < 7 == growing {
			s := &Session{client: name}
			table.put(s)
			want[name] = s
		} else {
			table.remove(name)
			delete(want, name)
		}
		if table.count != len(want) {
			t.Fatalf("step %d: %d sessions, want %d", step, table.count, len(want))
		}
		if got := table.get(name); got != want[name] {
			t.Fatalf("step %d: %s is %p, want %p", step, name, got, want[name])
		}
		if step%100 != 0 {
			continue
		}
		for i := range 2_000 {
			name := fmt.Sprint("c-", i)
			if got := table.get(name); got != want[name] {
				t.Fatalf("step %d: %s is %p, want %p", step, name, got, want[name])
			}
		}
	}
	for name := range want {
		table.remove(name)
	}
	if table.count != 0 || len(table.slots) != minSlots {
		t.Errorf("%d sessions in %d slots are left, want none in %d", table.count, len(table.slots), minSlots)
	}
}

func BenchmarkClientTable(b *testing.B) {
	table := newClientTable()
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprint("bench-", i))
		table.put(&Session{client: names[i]})
	}
	for i := 0; b.Loop(); i++ {
		if table.get(names[i%len(names)]) == nil {
			b.Fatal("lost")
		}
	}
}
