package session_test

import (
	"strings"
	"testing"

	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/queue"
)

// backendSet sets fields as the backend does: it may also set those that begin with $.
func (h *harness) backendSet(channel string, fields map[string]string) {
	h.t.Helper()
	u := &state.Update{Writer: state.BackendHolder}
	for name, value := range fields {
		u.Ops = append(u.Ops, state.Op{Field: name, Kind: state.Set, Value: []byte(value)})
	}
	a, err := h.queue.AppendChannel(h.t.Context(), queue.ChannelPush{Channel: channel, Update: u})
	if err != nil {
		h.t.Fatal(err)
	}
	h.hint(channel, a)
	h.settle()
}

func TestReadState(t *testing.T) {
	h := newStateHarness(t, session.Options{})
	h.backendSet("a", map[string]string{"$$hidden": "0", "$room": "1", "seat/1": "2", "seat/2": "3", "x": "4"})
	for _, c := range []struct{ request, want, cursor string }{
		{`"limit":0`, "$room=1 seat/1=2 seat/2=3 x=4", ""},
		{`"prefix":"seat/"`, "seat/1=2 seat/2=3", ""},
		{`"prefix":"$"`, "$room=1", ""},
		{`"prefix":"none"`, "", ""},
		{`"cursor":"$room","limit":2`, "seat/1=2 seat/2=3", "seat/2"},
		{`"prefix":"seat/","cursor":"x"`, "", ""},
		{`"prefix":"seat/","cursor":"$room"`, "seat/1=2 seat/2=3", ""},
	} {
		e := h.expect("state", "", "", `{"type":"state","ref":1,"channel":"a",%s}`, c.request)
		if got := fieldsOf(t, e); got != c.want || e.Cursor != c.cursor || *e.ID == 0 || e.First {
			t.Errorf("%s: %s %+v, want %s and the cursor %q", c.request, got, e, c.want, c.cursor)
		}
	}
	h.expect("error", "bad_request", "ref", `{"type":"state","channel":"a"}`)
	h.expect("error", "bad_request", "limit", `{"type":"state","ref":1,"channel":"a","limit":1025}`)
	h.expect("error", "bad_request", "cursor", `{"type":"state","ref":1,"channel":"a","cursor":"a b"}`)
	h.expect("error", "bad_request", "beginning of a field's name", `{"type":"state","ref":1,"channel":"a","prefix":"a b"}`)
	h.expect("error", "forbidden", "only the backend", `{"type":"state","ref":1,"channel":"a","prefix":"$$"}`)
	h.expect("error", "forbidden", "system channel", `{"type":"state","ref":1,"channel":"$all"}`)
	if e := h.expect("state", "", "", `{"type":"state","ref":1,"channel":"empty"}`); *e.ID != 0 || string(e.Fields) != "{}" || e.Cursor != "" {
		t.Errorf("an empty state is %+v", e)
	}
}

// TestReadStatePages reads a state that does not fit one page, with more hidden fields than fit
// one.
func TestReadStatePages(t *testing.T) {
	h := newStateHarness(t, session.Options{})
	fields := make(map[string]string)
	for _, prefix := range []string{"$$", "", "z"} {
		for i := range 9 {
			fields[prefix+strings.Repeat("a", i+1)] = string(large(10_000))
		}
	}
	h.backendSet("a", fields)
	found, cursor := 0, ""
	for pages := 1; ; pages++ {
		e := h.expect("state", "", "", `{"type":"state","ref":%d,"channel":"a","cursor":"%s"}`, pages, cursor)
		shown, err := state.ParseFields(e.Fields)
		if err != nil || len(shown) == 0 || len(e.Fields) > state.PageBytes {
			t.Fatalf("page %d: %d fields with %d bytes, %v", pages, len(shown), len(e.Fields), err)
		}
		found += len(shown)
		if cursor = e.Cursor; cursor == "" {
			break
		}
	}
	if found != 18 {
		t.Errorf("%d fields, want 18", found)
	}
}

func TestReadStateNeedsTheRight(t *testing.T) {
	o, refused := countRefusals(session.Options{Access: session.Access{Namespaces: ruled(t, namespace.Rule{
		Name: "*", Subscribe: namespace.Anyone, History: namespace.Anyone, State: namespace.Users,
	})}})
	h := newStateHarness(t, o)
	for _, request := range []string{
		`{"type":"state","ref":1,"channel":"a"}`,
		`{"type":"subscribe","channel":"a","state":true}`,
		`{"type":"history","channel":"a","state":true}`,
	} {
		h.expect("error", "forbidden", "not allowed to read its state", "%s", request)
	}
	if refused["state"] != 3 {
		t.Errorf("counted %v", refused)
	}
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"a"}`)
	h.expect("error", "forbidden", "not allowed to read its state", `{"type":"subscribe","channel":"a","state":"x"}`)
}

// TestHistoryShowsData: only a client that asks for the state receives the changes.
func TestHistoryShowsData(t *testing.T) {
	h := newStateHarness(t, session.Options{})
	h.expect("published", "", "", `{"type":"publish","channel":"a","data":1}`)
	h.expect("published", "", "", `{"type":"publish","channel":"a","set":{"x":1}}`)
	second := h.expect("published", "", "", `{"type":"publish","channel":"a","data":2,"set":{"y":2}}`)
	h.backendSet("a", map[string]string{"$$h": "1"})
	for request, want := range map[string]string{
		`{"type":"history","channel":"a"}`:              "1 2",
		`{"type":"history","channel":"a","state":true}`: `1 x=1 2,y=2`,
		`{"type":"history","channel":"a","state":"y"}`:  `1 2,y=2`,
	} {
		e := h.expect("history", "", "", "%s", request)
		var list []string
		for _, m := range *e.Messages {
			text := string(m.Data)
			if m.StateEvent != nil {
				for name, value := range m.Set {
					text = strings.TrimPrefix(text+","+name+"="+string(value), ",")
				}
			}
			list = append(list, text)
		}
		if got := strings.Join(list, " "); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	// A page without data is not an end: the answer has the next message with data.
	for range 300 {
		h.backendSet("a", map[string]string{"x": "1"})
	}
	h.expect("published", "", "", `{"type":"publish","channel":"a","data":3}`)
	e := h.expect("history", "", "", `{"type":"history","channel":"a","after":%d}`, *second.ID)
	if list := *e.Messages; len(list) != 1 || string(list[0].Data) != "3" || e.More {
		t.Errorf("the history after changes is %+v", e)
	}
}
