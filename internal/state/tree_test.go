package state

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestTree makes random changes of a tree and of a map, and compares them, and groups of their
// fields.
func TestTree(t *testing.T) {
	var tr tree
	want := map[string]*Field{}
	name := func() string { return fmt.Sprintf("%c/%03d", 'a'+rune(rand.IntN(3)), rand.IntN(400)) }
	for range 200 {
		for range 50 {
			if n := name(); rand.IntN(5) < 3 {
				f := &Field{ID: rand.Int64()}
				tr.set(n, f)
				want[n] = f
			} else {
				tr.remove(n)
				delete(want, n)
			}
		}
		names := slices.Sorted(maps.Keys(want))
		if got := namesOf(tr.all()); !slices.Equal(got, names) || tr.len() != len(names) {
			t.Fatalf("%d fields %v, want %v", tr.len(), got, names)
		}
		if n := name(); tr.get(n) != want[n] {
			t.Fatalf("%s is %v, want %v", n, tr.get(n), want[n])
		}
		for _, prefix := range []string{"", "a", "b/", "b/1", "c/39", "d", name()} {
			cursor := ""
			if rand.IntN(2) == 0 {
				cursor = name()
			}
			var after []string
			count := 0
			for _, n := range names {
				if strings.HasPrefix(n, prefix) {
					if count++; n > cursor {
						after = append(after, n)
					}
				}
			}
			if got := tr.count(prefix); got != count {
				t.Fatalf("%d fields begin with %q, want %d", got, prefix, count)
			}
			if got := namesOf(tr.group(prefix, cursor)); !slices.Equal(got, after) {
				t.Fatalf("the fields of %q after %q are %v, want %v", prefix, cursor, got, after)
			}
		}
	}
	if tr.removeAll(); tr.len() != 0 || tr.count("a") != 0 || len(namesOf(tr.all())) != 0 {
		t.Error("an emptied tree has fields")
	}
}

// namesOf returns the names in the order of the fields.
func namesOf(fields iter.Seq2[string, *Field]) (names []string) {
	for name := range fields {
		names = append(names, name)
	}
	return names
}
