package client

import (
	"fmt"
	"reflect"

	"switchboard/internal/state"
)

// onFields checks a call of OnFields. The snapshot replaces what was reported.
func (m *model) onFields(s Snapshot) {
	m.note("OnFields %s", describe(s))
	m.reported = map[string]state.Shown{}
	for name, f := range s.Fields {
		m.reported[name] = shownOf(f)
	}
	m.checkCallback(s.ID)
}

// onMessage checks a call of OnMessage. The changes change what was reported.
func (m *model) onMessage(msg Message) {
	m.note("OnMessage %d: %s, changes %t", msg.ID, msg.Data, msg.Changes != nil)
	if msg.Changes != nil {
		applyChanges(m.reported, msg.ID, msg.Changes)
		m.checkCallback(msg.ID)
	}
}

// applyChanges applies changes as an application does that has a copy of the fields.
func applyChanges(fields map[string]state.Shown, id int64, c *Changes) {
	if c.Cleared {
		clear(fields)
	}
	for name := range c.Gone {
		delete(fields, name)
	}
	for _, name := range c.Deleted {
		delete(fields, name)
	}
	for name, value := range c.Set {
		fields[name] = state.Shown{ID: id, Value: value, Away: fields[name].Away}
	}
	for name, until := range c.Until {
		if f, found := fields[name]; found {
			f.Until = shownOf(Field{Until: until}).Until
			fields[name] = f
		}
	}
	for name, until := range c.Away {
		if f, found := fields[name]; found {
			f.Until, f.Away = shownOf(Field{Until: until}).Until, true
			fields[name] = f
		}
	}
	for _, name := range c.Back {
		if f, found := fields[name]; found {
			f.Until, f.Away = shownOf(Field{Until: c.Until[name]}).Until, false
			fields[name] = f
		}
	}
}

func shownOf(f Field) state.Shown {
	s := state.Shown{ID: f.ID, Value: f.Value, Away: f.Away}
	if !f.Until.IsZero() {
		s.Until = f.Until.UnixMilli()
	}
	return s
}

// checkCallback compares the client's fields in a callback with the state at its id.
func (m *model) checkCallback(id int64) {
	got, ok := m.client.Fields("news")
	if !ok || got.ID != id {
		m.Errorf("Fields returns the state at %d, %t; the callback is about %d", got.ID, ok, id)
		return
	}
	if want := m.at[id]; want != nil { // else a failover has lost it
		m.compare(got, want.Fields, fmt.Sprintf("at %d", id))
	}
	m.compare(got, m.reported, fmt.Sprintf("at %d, with what was reported", id))
}

// compare compares the client's fields with those that the filter shows of want.
func (m *model) compare(got Snapshot, want map[string]state.Shown, when string) {
	for name, f := range want {
		f.Owners = nil
		shown, found := got.Fields[name]
		if m.filter.Shows(name) && !found || found && !reflect.DeepEqual(shownOf(shown), f) {
			m.Errorf("%s, field %s is %+v, %t; want %+v", when, name, shown, found, f)
		}
	}
	for name := range got.Fields {
		if _, found := want[name]; !found || !m.filter.Shows(name) {
			m.Errorf("%s, there is a field %s", when, name)
		}
	}
	if m.Failed() {
		m.logTrace()
	}
}
