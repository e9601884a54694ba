package state

import (
	"iter"
	"sort"
	"strings"

	"github.com/tidwall/btree"
)

// tree holds the fields of a state in the order of their names. The zero tree is empty.
//
// A B-tree takes as much memory as a map. A lookup takes longer, by some compared names, but a page
// or the size of a group does not depend on the other fields: a resource of holds has 40,000.
type tree struct{ m btree.Map[string, *Field] }

// get returns the field of that name, or nil.
func (t *tree) get(name string) *Field {
	f, _ := t.m.Get(name)
	return f
}

func (t *tree) set(name string, f *Field) { t.m.Set(name, f) }
func (t *tree) remove(name string)        { t.m.Delete(name) }
func (t *tree) removeAll()                { t.m.Clear() }
func (t *tree) len() int                  { return t.m.Len() }

// all iterates over all fields in the order of names. The tree must not change meanwhile.
func (t *tree) all() iter.Seq2[string, *Field] {
	return func(yield func(string, *Field) bool) { t.m.Scan(yield) }
}

// group iterates over the fields that begin with prefix and come after cursor, in the order of
// names. The tree must not change meanwhile.
func (t *tree) group(prefix, cursor string) iter.Seq2[string, *Field] {
	return func(yield func(string, *Field) bool) {
		t.m.Ascend(max(prefix, cursor), func(name string, f *Field) bool {
			if name == cursor {
				return true
			}
			return strings.HasPrefix(name, prefix) && yield(name, f)
		})
	}
}

// count returns the number of fields that begin with prefix, in O(log² n).
func (t *tree) count(prefix string) int {
	if prefix == "" {
		return t.len()
	}
	first := t.search(0, func(name string) bool { return name >= prefix })
	return t.search(first, func(name string) bool { return !strings.HasPrefix(name, prefix) }) - first
}

// search returns the number of the first name, from a number on, for which is is true. is must be
// true for all names after that.
func (t *tree) search(from int, is func(name string) bool) int {
	return from + sort.Search(t.len()-from, func(i int) bool {
		name, _, _ := t.m.GetAt(from + i)
		return is(name)
	})
}
