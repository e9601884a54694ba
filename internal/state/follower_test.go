package state

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"switchboard/internal/wire"
)

// subscriber is a client with a subscription in a world, and what the server has yet to send it.
type subscriber struct {
	filter   Filter
	follower Follower
	series   int64             // id of the series that is sent
	pages    []json.RawMessage // pages that are not sent
	first    bool              // the next page is the first one
	sending  int64             // id of the series of which a page was sent last
	sent     int               // how many entries of the log are sent
}

// TestFollower sends pages and messages to clients, with gaps and new series at any time, and
// compares their maps with the fold of the log.
func TestFollower(t *testing.T) {
	compared := 0
	eachSeed(t, func(w *world) {
		subscribers := []*subscriber{
			{filter: Filter{State: true, By: true}}, {filter: Filter{State: true, Prefix: "p/"}},
			{filter: Filter{State: true, Hidden: true}}, {filter: Filter{State: true, Prefix: "seat/1"}},
		}
		folds := []*Map{NewMap(0)} // by number of entries
		for i := 0; i < *steps/2 && w.wrong == ""; i++ {
			w.step()
			for _, logged := range w.log[len(folds)-1:] {
				fold := folds[len(folds)-1].clone()
				fold.Apply(logged.ID, logged.Entry)
				folds = append(folds, fold)
			}
			for _, s := range subscribers {
				for range w.IntN(4) {
					s.step(w, folds)
					if s.follower.Held() {
						compared++
						s.compare(w, folds[s.sent])
					}
				}
			}
		}
	})
	if compared == 0 {
		t.Error("no follower was compared")
	}
}

func (m *Map) clone() *Map {
	c := NewMap(m.ID)
	for name, f := range m.Fields {
		c.Fields[name] = f
	}
	return c
}

// step sends one page or message, begins a series, or loses messages.
func (s *subscriber) step(w *world, folds []*Map) {
	last := len(folds) - 1
	switch n := w.IntN(20); {
	case n == 0 || s.series == 0: // the view is at an id that is not below the subscription's cursor
		view := folds[s.sent+w.IntN(last-s.sent+1)]
		s.series, s.first = view.ID, true
		s.pages = view.Pages(0, s.filter, 1+w.IntN(60))
	case n == 1 && s.sent < last: // messages are lost: a gap, and then a new series
		s.sent += 1 + w.IntN(last-s.sent)
		s.follower.Gap()
		s.series, s.pages = 0, nil
	case len(s.pages) > 0 && n < 18:
		s.sendPage(w)
	case s.sent < last && (len(s.pages) == 0 || !s.first):
		s.sendMessage(w)
	}
}

func (s *subscriber) sendPage(w *world) {
	id := s.series
	e := s.roundTrip(w, wire.Event{
		Type: wire.TypeState, ID: &id, More: len(s.pages) > 1, StateEvent: &wire.StateEvent{First: s.first, Fields: s.pages[0]},
	})
	if err := s.follower.Page(*e.ID, e.More, e.StateEvent); err != nil {
		w.fail("%v", err)
	}
	s.pages, s.first, s.sending = s.pages[1:], false, id
}

func (s *subscriber) sendMessage(w *world) {
	logged := w.log[s.sent]
	s.sent++
	change := logged.Entry.Show(s.filter)
	if change == nil && logged.Entry.Data == nil {
		return
	}
	e := s.roundTrip(w, wire.Event{Type: wire.TypeMessage, ID: &logged.ID, Data: logged.Entry.Data, StateEvent: change})
	if s.filter.By != (e.StateEvent != nil && e.By != "") && logged.Entry.By != "" {
		w.fail("by is shown to %+v: %+v", s.filter, e.StateEvent)
	}
	s.follower.Message(*e.ID, e.StateEvent)
}

// roundTrip returns the event as a client decodes it.
func (s *subscriber) roundTrip(w *world, e wire.Event) wire.Event {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		w.fail("%v", err)
	}
	if decoded, err := wire.DecodeEvent(text.Bytes()); err != nil {
		w.fail("%v", err)
	} else {
		e = decoded
	}
	return e
}

// compare compares the map of the client with a fold. A client that has the pages at a higher id is
// ahead of the messages that it has received.
func (s *subscriber) compare(w *world, fold *Map) {
	if s.follower.Map().ID > fold.ID {
		if s.sending != s.follower.Map().ID {
			w.fail("the map is at %d, the message at %d, the series at %d", s.follower.Map().ID, fold.ID, s.sending)
		}
		fold = NewMap(0)
		for _, logged := range w.log {
			if logged.ID <= s.sending {
				fold.Apply(logged.ID, logged.Entry)
			}
		}
	}
	want := NewMap(0)
	for name, f := range fold.Fields {
		if f.Owners = nil; s.filter.Shows(name) {
			want.Fields[name] = f
		}
	}
	if got := s.follower.Map().Fields; !reflect.DeepEqual(got, want.Fields) {
		w.fail("at %d, %+v sees\n%v\nwant\n%v", fold.ID, s.filter, got, want.Fields)
	}
}

// TestFollowerIgnores checks pages that belong to no series, and malformed ones.
func TestFollowerIgnores(t *testing.T) {
	var f Follower
	page := func(id int64, first, more bool, fields string) error {
		return f.Page(id, more, &wire.StateEvent{First: first, Fields: json.RawMessage(fields)})
	}
	for _, step := range []struct {
		id          int64
		first, more bool
		fields      string
		held        bool
		names       int
	}{
		{5, false, false, `{"a":[1,1]}`, false, 0}, // no series has begun
		{5, true, true, `{"a":[1,1]}`, false, 1},
		{4, false, false, `{"b":[1,1]}`, false, 1}, // of an older series
		{7, true, true, `{"c":[1,1]}`, false, 1},
		{5, false, false, `{"b":[1,1]}`, false, 1},
		{7, false, false, `{"d":[1,1],"x":null}`, true, 2},
		{7, false, false, `{"e":[1,1]}`, true, 2}, // after the last page
		{8, true, false, `{}`, true, 0},
	} {
		if err := page(step.id, step.first, step.more, step.fields); err != nil {
			t.Fatal(err)
		}
		if f.Held() != step.held || len(f.Map().Fields) != step.names {
			t.Errorf("after %+v: held %v, fields %v", step, f.Held(), f.Map().Names())
		}
	}
	for _, fields := range []string{`[]`, `{"a":7}`, `{"a":[]}`, `{"a":["x"]}`, `{"a":[1,2,"x"]}`} {
		if err := page(9, true, false, fields); err == nil {
			t.Errorf("%s: no error", fields)
		} else if f.Held() {
			t.Errorf("%s: held", fields)
		}
	}
}

// TestParseFields checks that ParseFields reads what AppendField writes.
func TestParseFields(t *testing.T) {
	for _, want := range []*Shown{
		nil, {ID: 1, Value: []byte(`null`)}, {ID: 2, Value: []byte(`[1]`), Until: 9}, {ID: 3, Value: []byte(`"x"`), Away: true},
	} {
		object := append(AppendField([]byte{'{'}, "a/%41", want), '}')
		got, err := ParseFields(object)
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got["a/%41"], want) {
			t.Errorf("%s: got %+v, %v", object, got["a/%41"], err)
		}
	}
	got, err := ParseFields([]byte(`{"a":[7]}`))
	if err != nil || got["a"].ID != 7 || got["a"].Value != nil {
		t.Errorf("an id alone: got %+v, %v", got["a"], err)
	}
}
