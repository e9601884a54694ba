package state

import (
	"iter"
	"slices"
)

// Map holds the fields of a channel at one id, as readers see them. It is not safe for concurrent
// use.
type Map struct {
	ID     int64 // of the last entry that was applied, or of the page that it began with
	Fields map[string]Shown
}

// Shown is a field as readers see it.
type Shown struct {
	ID     int64
	Value  []byte // compact JSON; shared, not to be modified
	Until  int64  // 0 for no end
	Away   bool
	Owners []string // only a server's Map has them
}

// NewMap returns an empty Map at an id.
func NewMap(id int64) *Map { return &Map{ID: id, Fields: make(map[string]Shown)} }

// Show returns the field as readers see it.
func (f *Field) Show() Shown {
	return Shown{ID: f.ID, Value: f.Value, Until: f.Until(), Away: f.Away != 0, Owners: f.Owners}
}

// Apply applies the entry with the given id. It does nothing if id is not above m.ID. Values are
// not copied.
func (m *Map) Apply(id int64, e *Entry) {
	if id > m.ID {
		m.ID = id
		e.applyTo(m, id)
	}
}

// Get returns the field of that name.
func (m *Map) Get(name string) (f Shown, found bool) {
	f, found = m.Fields[name]
	return f, found
}

func (m *Map) put(name string, f Shown) { m.Fields[name] = f }
func (m *Map) remove(name string)       { delete(m.Fields, name) }
func (m *Map) removeAll()               { clear(m.Fields) }

func (m *Map) removeGone(names map[string]string) {
	for name := range names {
		delete(m.Fields, name)
	}
}

// fieldSet is a set of fields that changes with entries. Map and Table implement it.
type fieldSet interface {
	Get(name string) (f Shown, found bool)
	put(name string, f Shown)
	remove(name string)
	removeGone(names map[string]string)
	removeAll()
}

// applyTo makes the changes of the entry with the given id.
func (e *Entry) applyTo(fields fieldSet, id int64) {
	if e.Cleared {
		fields.removeAll()
	}
	fields.removeGone(e.Gone)
	for _, name := range e.Del {
		fields.remove(name)
	}
	for name, value := range e.Set {
		f, _ := fields.Get(name)
		f.ID, f.Value, f.Until = id, value, 0
		fields.put(name, f)
	}
	for name, until := range e.Until {
		edit(fields, name, func(f *Shown) { f.Until = until })
	}
	for name, until := range e.Away {
		edit(fields, name, func(f *Shown) { f.Away, f.Until = true, until })
	}
	for _, name := range e.Back {
		edit(fields, name, func(f *Shown) { f.Away, f.Until = false, e.Until[name] })
	}
	for name, owners := range e.Own {
		edit(fields, name, func(f *Shown) { f.Owners = owners })
	}
}

// edit calls do for a field that exists.
func edit(fields fieldSet, name string, do func(*Shown)) {
	if f, found := fields.Get(name); found {
		do(&f)
		fields.put(name, f)
	}
}

// Names returns the names of the fields in order.
func (m *Map) Names() []string {
	names := make([]string, 0, len(m.Fields))
	for name := range m.Fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// sorted returns the names and the fields in order.
func (m *Map) sorted() iter.Seq2[string, *Shown] {
	return func(yield func(string, *Shown) bool) {
		for _, name := range m.Names() {
			if f := m.Fields[name]; !yield(name, &f) {
				return
			}
		}
	}
}

// Expire removes the fields whose Until has passed. Readers see a field as absent from that time
// on, before an entry says so.
func (m *Map) Expire(now int64) {
	for name, f := range m.Fields {
		if f.Until > 0 && f.Until <= now {
			delete(m.Fields, name)
		}
	}
}
