package dialect_test

import (
	"encoding/json"
	"sync"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/broker/dialect/native"
	"switchboard/internal/dialecttest"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// TestShown checks which message subscribers receive, and that those with the same filter share it.
func TestShown(t *testing.T) {
	d := native.New(0)
	entry := &state.Entry{Set: map[string]json.RawMessage{"x": []byte("1"), "$$y": []byte("2")}, By: "tab"}
	data := d.Message("room", 7, []byte(`"hi"`))
	withData := *entry
	withData.Data = data.Data
	data.Changes = &dialect.Changes{Entry: &withData, Size: 1000, WriteSize: 600}
	empty := &dialect.Message{Channel: "room", ID: 8, Changes: &dialect.Changes{Entry: entry}}
	malformed := &dialect.Message{Channel: "room", ID: 9, Changes: &dialect.Changes{}}
	plain := d.Message("room", 10, []byte(`"plain"`))
	authored := d.Authored("room", 11, []byte(`"mine"`), "tab")
	nothing := &dialect.Message{Channel: "room", ID: 12, Envelope: &dialect.Envelope{By: "tab"}}
	all, by, none := state.Filter{State: true}, state.Filter{State: true, By: true}, state.Filter{State: true, Prefix: "none/"}
	author := state.Filter{By: true}
	for _, test := range []struct {
		name    string
		message *dialect.Message
		filter  state.Filter
		json    string // "" for nothing
	}{
		{"data", data, all, `{"type":"message","channel":"room","id":7,"data":"hi","set":{"x":1}}`},
		{"data, with the writer", data, by, `{"type":"message","channel":"room","id":7,"data":"hi","set":{"x":1},"by":"tab"}`},
		{"data, other fields", data, none, `{"type":"message","channel":"room","id":7,"data":"hi"}`},
		{"data, no state", data, state.Filter{}, `{"type":"message","channel":"room","id":7,"data":"hi"}`},
		{"no data", empty, all, `{"type":"message","channel":"room","id":8,"set":{"x":1}}`},
		{"no data, other fields", empty, none, ""},
		{"no data, no state", empty, state.Filter{}, ""},
		{"no data, only the author", empty, author, ""},
		{"data, only the author", data, author, `{"type":"message","channel":"room","id":7,"data":"hi","by":"tab"}`},
		{"malformed", malformed, all, ""},
		{"malformed, only the author", malformed, author, ""},
		{"an author, no state", authored, author, `{"type":"message","channel":"room","id":11,"data":"mine","by":"tab"}`},
		{"an author, state", authored, by, `{"type":"message","channel":"room","id":11,"data":"mine","by":"tab"}`},
		{"an author that is not shown", authored, state.Filter{}, `{"type":"message","channel":"room","id":11,"data":"mine"}`},
		{"an author, state without authors", authored, all, `{"type":"message","channel":"room","id":11,"data":"mine"}`},
		{"an author without data", nothing, author, ""},
		{"an author without data, state", nothing, by, ""},
		{"plain", plain, all, `{"type":"message","channel":"room","id":10,"data":"plain"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			shown := test.message.Shown(test.filter, d)
			got := ""
			if shown != nil && !shown.IsEmpty() {
				got = string(native.JSON(shown))
			}
			if shown == nil && !test.filter.State {
				t.Error("a position is not moved past the message") // only subscribers with the state have other ids
			}
			if got != test.json {
				t.Errorf("got %s, want %s", got, test.json)
			}
			if shown != nil && shown != test.message && (shown.ID != test.message.ID || shown.Channel != "room") {
				t.Errorf("the part has the id %d in channel %q", shown.ID, shown.Channel)
			}
			var loops sync.WaitGroup
			for range 8 {
				loops.Go(func() {
					if test.message.Shown(test.filter, d) != shown {
						t.Error("another loop gets another message")
					}
				})
			}
			loops.Wait()
		})
	}
	if batch := (dialect.Batch{Messages: []*dialect.Message{data, empty, malformed, plain, authored, nothing}}); batch.Count() != 3 {
		t.Errorf("a batch counts %d messages, want 3 that are not empty", batch.Count())
	}
	if size, bare := authored.Size(), d.Message("room", 11, []byte(`"mine"`)).Size(); size < 2*bare {
		t.Errorf("a message with an author counts %d bytes, without one %d", size, bare)
	}
	if data.Size() != 1000 || data.WriteSize() != 600 {
		t.Errorf("the message counts %d bytes, %d on a socket; want those of its changes", data.Size(), data.WriteSize())
	}
}

// TestEmptyMessage checks that a message that only changes the state has no bytes without the state
// and that every dialect sends the state to connections that see it.
func TestEmptyMessage(t *testing.T) {
	for _, spoken := range dialecttest.All() {
		t.Run(spoken.Name, func(t *testing.T) {
			d := spoken.New(0)
			for _, framing := range []dialect.Framing{dialect.Stream, spoken.Framing} {
				o, err := d.Open(dialect.Hello{Framing: framing})
				if err != nil {
					t.Fatal(err)
				}
				bytes := func(m *dialect.Message) []byte {
					if f := o.Encoding.Form; f != nil {
						return (&dialect.Batch{Messages: []*dialect.Message{m, m}}).Bytes(f)
					}
					return o.Encoding.AppendMessage(nil, m)
				}
				entry := &state.Entry{Gone: map[string]string{"x": state.Expired}}
				m := &dialect.Message{Channel: "room", ID: 8, Changes: &dialect.Changes{Entry: entry}}
				if got := bytes(m); len(got) > 0 {
					t.Errorf("framing %d: an empty message is %q", framing, got)
				}
				shown := bytes(m.Shown(state.Filter{State: true}, d))
				if len(shown) == 0 {
					t.Errorf("framing %d: the changes have no bytes", framing)
				}
				m = d.Message("room", 8, []byte(`"hi"`))
				m.Changes = &dialect.Changes{Entry: entry}
				if got := bytes(m.Shown(state.Filter{State: true}, d)); len(got) <= len(shown) {
					t.Errorf("framing %d: the changes with data are %q", framing, got)
				}
			}
			page := wire.Event{Type: wire.TypeState, Channel: "room", StateEvent: &wire.StateEvent{First: true, Fields: []byte(`{"x":[7,1]}`)}}
			o, err := d.Open(dialect.Hello{Framing: spoken.Framing})
			if err != nil {
				t.Fatal(err)
			}
			_, unit, _ := dialect.NextFrame(o.Encoding.AppendEvent(nil, page))
			got, err := spoken.Event(unit)
			if err != nil || got.StateEvent == nil || !got.First || string(got.Fields) != `{"x":[7,1]}` {
				t.Errorf("the page becomes %+v, %v", got, err)
			}
		})
	}
}
