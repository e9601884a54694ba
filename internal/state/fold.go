package state

import (
	"encoding/json"
	"slices"
)

// rawValue is the JSON of a value.
type rawValue = json.RawMessage

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
	if id <= m.ID {
		return
	}
	m.ID = id
	if e.Cleared {
		clear(m.Fields)
	}
	for name := range e.Gone {
		delete(m.Fields, name)
	}
	for _, name := range e.Del {
		delete(m.Fields, name)
	}
	for name, value := range e.Set {
		f := m.Fields[name]
		f.ID, f.Value, f.Until = id, value, 0
		m.Fields[name] = f
	}
	for name, until := range e.Until {
		m.change(name, func(f *Shown) { f.Until = until })
	}
	for name, until := range e.Away {
		m.change(name, func(f *Shown) { f.Away, f.Until = true, until })
	}
	for _, name := range e.Back {
		m.change(name, func(f *Shown) { f.Away, f.Until = false, e.Until[name] })
	}
	for name, owners := range e.Own {
		m.change(name, func(f *Shown) { f.Owners = owners })
	}
}

// change calls f for a field that exists.
func (m *Map) change(name string, f func(*Shown)) {
	if shown, found := m.Fields[name]; found {
		f(&shown)
		m.Fields[name] = shown
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

// Expire removes the fields whose Until has passed. Readers see a field as absent from that time
// on, before an entry says so.
func (m *Map) Expire(now int64) {
	for name, f := range m.Fields {
		if f.Until > 0 && f.Until <= now {
			delete(m.Fields, name)
		}
	}
}
