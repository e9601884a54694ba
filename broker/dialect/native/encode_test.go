package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

func TestEventRoundTrip(t *testing.T) {
	tests := map[string]struct {
		event wire.Event
		json  string
	}{
		"connected": {
			wire.Event{Type: wire.TypeConnected, Ref: wire.RefOf(1), Client: "phone", User: "alice", Server: "b1", Ping: 25, Queued: ptr(0), ID: ptr(int64(5))},
			`{"type":"connected","ref":1,"client":"phone","user":"alice","server":"b1","ping":25,"queued":0,"id":5}`,
		},
		"subscribed": {
			wire.Event{Type: wire.TypeSubscribed, Ref: wire.RefOf(0), Channel: "news", ID: ptr(int64(0)), Recovered: ptr(false)},
			`{"type":"subscribed","ref":0,"channel":"news","id":0,"recovered":false}`,
		},
		"gap":   {wire.Event{Type: wire.TypeGap, Channel: "a", After: ptr(int64(1)), ID: ptr(int64(1) << 52)}, `{"type":"gap","channel":"a","after":1,"id":4503599627370496}`},
		"reply": {wire.Event{Type: wire.TypeReply, Ref: wire.RefOf(-1), Data: json.RawMessage(`{"a":[]}`)}, `{"type":"reply","ref":-1,"data":{"a":[]}}`},
		"markup": {
			wire.Event{Type: wire.TypeReply, Data: json.RawMessage(`"<b>&\u2028"`)},
			`{"type":"reply","data":"<b>&\u2028"}`,
		},
		"history": {
			wire.Event{Type: wire.TypeHistory, Channel: "a", Messages: &[]wire.Stored{{ID: 1, Data: json.RawMessage(`"<"`)}, {ID: 2, Data: json.RawMessage(`null`)}}, More: true},
			`{"type":"history","channel":"a","messages":[{"id":1,"data":"<"},{"id":2,"data":null}],"more":true}`,
		},
		"empty history": {wire.Event{Type: wire.TypeHistory, Channel: "a", Messages: &[]wire.Stored{}}, `{"type":"history","channel":"a","messages":[]}`},
		"error":         {wire.Event{Type: wire.TypeError, Code: "forbidden", Message: `channel <"a">: no`}, `{"type":"error","code":"forbidden","message":"channel <\"a\">: no"}`},
		"page": {
			wire.Event{Type: wire.TypeState, Channel: "a", ID: ptr(int64(7)), More: true, StateEvent: &wire.StateEvent{First: true, Fields: json.RawMessage(`{"x":[5,"a b"]}`)}},
			`{"type":"state","channel":"a","id":7,"more":true,"first":true,"fields":{"x":[5,"a b"]}}`,
		},
		"full": {
			wire.Event{Type: wire.TypeError, Code: "full", Message: "no", StateEvent: &wire.StateEvent{Group: "seat/", Max: ptr(4)}},
			`{"type":"error","code":"full","message":"no","group":"seat/","max":4}`,
		},
		"changes": {
			wire.Event{Type: wire.TypeMessage, Channel: "a", ID: ptr(int64(7)), StateEvent: &wire.StateEvent{Gone: map[string]string{"x": "left"}, By: "tab"}},
			`{"type":"message","channel":"a","id":7,"gone":{"x":"left"},"by":"tab"}`,
		},
		"changes with data": {
			wire.Event{Type: wire.TypeMessage, Channel: "a", ID: ptr(int64(7)), Data: json.RawMessage(`1`), StateEvent: &wire.StateEvent{Del: []string{"x"}}},
			`{"type":"message","channel":"a","id":7,"data":1,"del":["x"]}`,
		},
		"closing":          {wire.Event{Type: wire.TypeClosing, Code: "idle", Reconnect: ptr(true), AfterMS: 5}, `{"type":"closing","code":"idle","reconnect":true,"after_ms":5}`},
		"closing for good": {wire.Event{Type: wire.TypeClosing, Code: "superseded", Reconnect: ptr(false)}, `{"type":"closing","code":"superseded","reconnect":false}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			encoded := AppendEvent(nil, &test.event)
			if got := string(encoded); got != test.json {
				t.Errorf("encoded\n%s, want\n%s", got, test.json)
			}
			got, err := wire.DecodeEvent(encoded)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.event) {
				t.Errorf("decoded %+v, want %+v", got, test.event)
			}
		})
	}
}

// TestPageSharesFields checks that a page holds its fields only once.
func TestPageSharesFields(t *testing.T) {
	fields := json.RawMessage(`{"x":[5,"a"]}`)
	given := &wire.StateEvent{First: true, Fields: fields}
	m := New(0).Event(wire.Event{Type: wire.TypeState, Channel: "a", ID: ptr(int64(7)), StateEvent: given})
	text := m.Prepared.Payload()
	if got := m.Event.Fields; string(got) != string(fields) || &got[0] != &text[len(text)-1-len(fields)] {
		t.Errorf("the page has the fields %s, not as a part of %s", got, text)
	}
	if &given.Fields[0] != &fields[0] {
		t.Error("the event of the caller has changed")
	}
}

// TestEncodeInvalidData checks that a payload that is not JSON becomes an error event. Written as
// it is, it would break the stream.
func TestEncodeInvalidData(t *testing.T) {
	got, err := wire.DecodeEvent(AppendEvent(nil, &wire.Event{Type: wire.TypeReply, Ref: wire.RefOf(7), Data: json.RawMessage(`{`)}))
	want := wire.Event{Type: wire.TypeError, Ref: wire.RefOf(7), Code: "bad_request", Message: "the payload is not JSON"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestEncodeMessage(t *testing.T) {
	for _, channel := range []string{"", "news", `a"b\c\\"`, "ünï/日本", "a\u2028b", "<&>", "$all"} {
		for _, data := range []string{`{}`, `null`, `{"a":"<&>\"\\"}`, "\"\u2028\"", strings.Repeat("1", 70_000)} {
			checkMessage(t, channel, 735325130218701, []byte(data))
		}
	}
}

// checkMessage checks that a message decodes to the event that it stands for.
func checkMessage(t *testing.T, channel string, id int64, data []byte) {
	t.Helper()
	m := New(0).Message(channel, id, data)
	got, err := wire.DecodeEvent(m.Prepared.Payload())
	if err != nil {
		t.Fatalf("channel %q, data %.40q: %v", channel, data, err)
	}
	want := wire.Event{Type: wire.TypeMessage, Channel: channel, ID: &id, Data: data}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("channel %q: got %+v, want %+v", channel, got, want)
	}
	if string(m.Data) != string(data) || m.Channel != channel || m.ID != id {
		t.Fatalf("channel %q: the message has data %.40q", channel, m.Data)
	}
	if line := m.Prepared.Line(); bytes.IndexByte(line, '\n') != len(line)-1 {
		t.Fatalf("a line break within the message: %.80q", line)
	}
}

// TestAuthored checks that a message with an author has the bytes of Part for subscribers that see
// the author, and those of Message for the others, and that all connections share them.
func TestAuthored(t *testing.T) {
	d := New(0)
	for _, channel := range []string{"news", `a"b\c`, strings.Repeat("n", 200)} {
		for _, by := range []string{"alice/phone", `a"b\c`, "ünï", strings.Repeat("b", 200)} {
			for _, data := range []string{`{}`, `{"a":"<&>\"}`, strings.Repeat("1", 200), strings.Repeat("1", 70_000)} {
				given := []byte(data)
				m := d.Authored(channel, 7, given, by)
				clear(given) // data is not kept
				shown := m.Shown(state.Filter{By: true}, d)
				part := d.Part(channel, 7, []byte(data), &wire.StateEvent{By: by})
				size := m.Size()
				if got := shown.Bytes(&lineForm); !bytes.Equal(got, part.Bytes(&lineForm)) || string(shown.Data) != data || shown.Envelope.By != by {
					t.Errorf("with the author: %.200s, data %.80s", got, shown.Data)
				}
				plain := d.Message(channel, 7, []byte(data))
				for _, form := range []*dialect.Form{&lineForm, &socketForm} {
					got := m.Shown(state.Filter{}, d).Bytes(form)
					if !bytes.Equal(got, plain.Bytes(form)) || string(m.Data) != data {
						t.Errorf("without the author: %.200s, data %.80s", got, m.Data)
					}
				}
				if with := len(part.Bytes(&lineForm)); m.Size() != size || size < with+plain.Size() || m.WriteSize() < len(part.Bytes(&socketForm)) {
					t.Errorf("size %d, then %d, to write %d; want at least %d + %d", size, m.Size(), m.WriteSize(), with, plain.Size())
				}
			}
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add([]byte(`{"type":"message","channel":"news","id":735325130218701,"data":{"a":1}}`))
	f.Add([]byte(`{"type":"history","ref":3,"messages":[{"id":1,"data":null}],"more":true}`))
	f.Add([]byte(`{"type":"closing","code":"draining","reconnect":true,"after_ms":1840}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := wire.DecodeEvent(raw)
		if err != nil {
			if _, ok := errors.AsType[*wire.Error](err); !ok {
				t.Fatalf("not a *wire.Error: %v", err)
			}
			return
		}
		encoded := AppendEvent(nil, &e)
		back, err := wire.DecodeEvent(encoded)
		if err != nil || back.Type != e.Type || back.Ref != e.Ref {
			t.Fatalf("%s becomes %s, %v", raw, encoded, err)
		}
		if bytes.ContainsAny(encoded, "\n\r") {
			t.Fatalf("a line break within the event: %q", encoded)
		}
	})
}

func FuzzEncodeMessage(f *testing.F) {
	f.Add("news", int64(735325130218701), []byte(`{"a": 1}`))
	f.Add(`"\`, int64(-1), []byte("\"\u2028\""))
	f.Add("", int64(0), []byte("[\n]"))
	f.Fuzz(func(t *testing.T, channel string, id int64, data []byte) {
		if channel != "" && wire.CheckName("channel", channel) != nil {
			return
		}
		compact, err := payload.Compact(data, 1<<20)
		if err != nil {
			return
		}
		checkMessage(t, channel, id, compact)
	})
}
