package state

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// Table holds the same as a [Map] in about half the memory: in an array in the order of names. A
// change takes O(log n), and a new or removed field moves the ones after it. The zero Table is
// empty. It is not safe for concurrent use.
type Table struct {
	ID   int64 // of the last entry that was applied, or of the page that it began with
	rows []row
}

type row struct {
	name string
	Shown
}

// NewTable returns an empty Table at an id, with room for n fields.
func NewTable(id int64, n int) *Table { return &Table{ID: id, rows: make([]row, 0, n)} }

// Add adds a field whose name is after those of all fields of t.
func (t *Table) Add(name string, f Shown) { t.rows = append(t.rows, row{name, f}) }

// Apply applies the entry with the given id. It does nothing if id is not above t.ID. Values are
// not copied.
func (t *Table) Apply(id int64, e *Entry) {
	if id > t.ID {
		t.ID = id
		e.applyTo(t, id)
	}
}

// Len returns the number of fields.
func (t *Table) Len() int { return len(t.rows) }

// All returns the names and the fields in order.
func (t *Table) All() iter.Seq2[string, *Shown] {
	return func(yield func(string, *Shown) bool) {
		for i := range t.rows {
			if !yield(t.rows[i].name, &t.rows[i].Shown) {
				return
			}
		}
	}
}

// Names returns the names of the fields in order.
func (t *Table) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range t.All() {
			if !yield(name) {
				return
			}
		}
	}
}

// Pages returns the fields as Map.Pages does.
func (t *Table) Pages(now int64, filter Filter, limit int) []json.RawMessage {
	return pages(t.All(), now, filter, limit)
}

// Get returns the field of that name.
func (t *Table) Get(name string) (f Shown, found bool) {
	if i, found := t.search(name); found {
		return t.rows[i].Shown, true
	}
	return Shown{}, false
}

func (t *Table) put(name string, f Shown) {
	i, found := t.search(name)
	if !found {
		t.rows = slices.Insert(t.rows, i, row{name: name})
	}
	t.rows[i].Shown = f
}

func (t *Table) remove(name string) {
	if i, found := t.search(name); found {
		t.rows = slices.Delete(t.rows, i, i+1)
	}
}

// removeGone removes fields in one pass over all of them: a thousand may end at the same time.
func (t *Table) removeGone(names map[string]string) {
	if len(names) > 0 {
		t.rows = slices.DeleteFunc(t.rows, func(r row) bool {
			_, gone := names[r.name]
			return gone
		})
	}
}

func (t *Table) removeAll() { t.rows = nil }

func (t *Table) search(name string) (i int, found bool) {
	return slices.BinarySearchFunc(t.rows, name, func(r row, name string) int { return strings.Compare(r.name, name) })
}
