package client

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/internal/wire"
)

// recordFields makes the callbacks record fields and changes.
func recordFields(s *scenario, o *Options) {
	o.OnFields = func(snapshot Snapshot) { s.record("fields %s", describe(snapshot)) }
	o.OnMessage = func(m Message) {
		changes, _ := json.Marshal(m.Changes)
		if m.Changes != nil {
			changes, _ = json.Marshal(m.Changes.Set)
		}
		s.record("%d %s by=%s set=%s", m.ID, m.Data, m.By, changes)
	}
}

// describe returns a snapshot as text: the id, and each field with its id and value.
func describe(s Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %d:", s.ID)
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		f := s.Fields[name]
		fmt.Fprintf(&b, " %s@%d=%s", name, f.ID, f.Value)
		if f.Away {
			b.WriteString("(away)")
		}
	}
	return b.String()
}

// subscribeState subscribes to all fields of news, at position id.
func (s *scenario) subscribeState(p *peer, opts SubscribeOptions, id int64) wire.Request {
	s.Helper()
	opts.State = true
	done := make(chan error)
	go func() {
		_, err := s.client.Subscribe(s.Context(), "news", opts)
		done <- err
	}()
	req := p.expect(wire.TypeSubscribe)
	p.answer(req, `{"type":"subscribed","channel":"news","id":%d}`, id)
	if err := <-done; err != nil {
		s.Fatal(err)
	}
	return req
}

func (s *scenario) wantFields(want string) {
	s.Helper()
	snapshot, ok := s.client.Fields("news")
	if got := describe(snapshot); !ok || got != want {
		s.Fatalf("the fields are %q, %t; want %q", got, ok, want)
	}
}

func TestFieldsArriveInPages(t *testing.T) {
	forEachTransport(t, recordFields, func(s *scenario) {
		p, _ := s.accept()
		if req := s.subscribeState(p, SubscribeOptions{}, 10); req.StateRequest == nil || *req.State != (wire.Selector{}) || req.Held {
			s.Fatalf("subscribed with %+v, want all fields", req.StateRequest)
		}
		p.sendf(`{"type":"state","channel":"news","id":12,"fields":{"x":[1,1]},"more":true}`) // not the first page
		p.sendf(`{"type":"state","channel":"news","id":12,"first":true,"fields":{"a":[3,"A"],"b":[4,1,0,"away"]},"more":true}`)
		s.wantCallbacks("[]")
		if _, ok := s.client.Fields("news"); ok {
			s.Fatal("Fields returns an incomplete state")
		}
		p.sendf(`{"type":"state","channel":"news","id":12,"fields":{"c":[5,null]}}`)
		s.wantCallbacks(`[fields at 12: a@3="A" b@4=1(away) c@5=null]`)
		p.sendf(`{"type":"message","channel":"news","id":11,"set":{"a":"old"},"data":1}`)
		p.sendf(`{"type":"message","channel":"news","id":12,"set":{"a":"old"}}`)
		p.sendf(`{"type":"message","channel":"news","id":13,"set":{"a":"new","d":2},"del":["c"],"back":["b"],"by":"tab","data":2}`)
		p.sendf(`{"type":"message","channel":"news","id":14,"gone":{"d":"expired"}}`)
		s.wantCallbacks(`[11 1 by= set=null 13 2 by=tab set={"a":"new","d":2} 14  by= set=null]`)
		s.wantFields(`at 14: a@13="new" b@4=1`)
		if f, ok := s.client.Field("news", "a"); !ok || f.ID != 13 {
			s.Fatalf("Field: %+v, %t", f, ok)
		}
		if _, ok := s.client.Field("news", "c"); ok {
			s.Fatal("a deleted field is left")
		}
		p.drop()
		p, _ = s.accept()
		if req := p.expect(wire.TypeSubscribe); *req.After != 14 || !req.Held {
			s.Fatalf("subscribed again after %d, held %t; want 14 and held", *req.After, req.Held)
		}
	})
}

// TestCallbackSeesTheStateOfItsMessage checks that messages which wait do not change the fields.
func TestCallbackSeesTheStateOfItsMessage(t *testing.T) {
	change := func(s *scenario, o *Options) {
		o.OnMessage = func(m Message) {
			<-s.release
			snapshot, _ := s.client.Fields("news")
			s.record("%d %s", m.ID, describe(snapshot))
		}
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		s.subscribeState(p, SubscribeOptions{}, 10)
		p.sendf(`{"type":"state","channel":"news","id":10,"first":true}`)
		p.sendf(`{"type":"message","channel":"news","id":11,"set":{"a":1}}`)
		p.sendf(`{"type":"message","channel":"news","id":12,"set":{"a":2}}`)
		s.wantCallbacks("[]")
		close(s.release)
		s.wantCallbacks("[11 at 11: a@11=1 12 at 12: a@12=2]")
	})
}

// TestHeld checks when the client says that it holds the state: after the last page, unless
// something was missed since then.
func TestHeld(t *testing.T) {
	newer := `{"type":"state","channel":"news","id":13,"first":true}`
	last := `{"type":"state","channel":"news","id":12,"first":true,"fields":{"a":[3,1]}}`
	for _, tc := range []struct {
		name   string
		events []string
		held   bool
	}{
		{"no page", nil, false},
		{"some pages", []string{`{"type":"state","channel":"news","id":12,"first":true,"more":true}`}, false},
		{"all pages", []string{last}, true},
		{"message", []string{last, `{"type":"message","channel":"news","id":13,"set":{"a":2}}`}, true},
		{"pages newer than the position", []string{newer}, false},
		{"message of the newer pages", []string{newer, `{"type":"message","channel":"news","id":13,"set":{"a":2}}`}, true},
		{"gap", []string{last, `{"type":"gap","channel":"news","after":12,"id":20}`}, false},
		{"gap elsewhere", []string{last, `{"type":"gap","channel":"$all","after":12,"id":20}`}, true},
		{"reset", []string{last, `{"type":"gap","channel":"news","after":12,"id":9}`}, false},
		{"pages after a gap", []string{last, `{"type":"gap","channel":"news","after":12,"id":20}`, last}, true},
		{"some pages after a gap", []string{`{"type":"state","channel":"news","id":12,"first":true,"more":true}`,
			`{"type":"gap","channel":"news","after":12,"id":20}`, `{"type":"state","channel":"news","id":12}`}, false},
		{"new pages", []string{last, `{"type":"state","channel":"news","id":13,"first":true,"more":true}`}, false},
		{"page of another series", []string{`{"type":"state","channel":"news","id":12,"first":true,"more":true}`, `{"type":"state","channel":"news","id":13}`}, false},
		{"answer to a request", []string{`{"type":"state","channel":"news","ref":99,"id":12,"first":true}`}, false},
		{"malformed page", []string{last, `{"type":"state","channel":"news","id":13,"first":true,"fields":{"a":["x"]}}`}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			forEachTransport(t, nil, func(s *scenario) {
				p, _ := s.accept()
				s.subscribeState(p, SubscribeOptions{}, 12)
				for _, ev := range tc.events {
					p.send(ev)
				}
				s.takeCallbacks()
				p.drop()
				p, _ = s.accept()
				if req := p.expect(wire.TypeSubscribe); req.Held != tc.held {
					s.Fatalf("held is %t, want %t", req.Held, tc.held)
				}
			})
		})
	}
}

func TestFieldsAfterAReconnect(t *testing.T) {
	forEachTransport(t, recordFields, func(s *scenario) {
		p, _ := s.accept()
		s.subscribeState(p, SubscribeOptions{}, 10)
		p.sendf(`{"type":"state","channel":"news","id":10,"first":true,"fields":{"a":[3,1]}}`)
		s.wantCallbacks("[fields at 10: a@3=1]")
		p.drop()
		s.wantFields("at 10: a@3=1")

		p, _ = s.accept()
		p.answer(p.expect(wire.TypeSubscribe), `{"type":"subscribed","channel":"news","id":10,"recovered":true}`)
		p.sendf(`{"type":"message","channel":"news","id":11,"set":{"b":2}}`)
		s.wantCallbacks(`[11  by= set={"b":2}]`)
		s.wantFields("at 11: a@3=1 b@11=2")
		p.drop()

		p, _ = s.accept() // a failover has lost id 11
		p.answer(p.expect(wire.TypeSubscribe), `{"type":"subscribed","channel":"news","id":10,"recovered":false}`)
		p.sendf(`{"type":"state","channel":"news","id":10,"first":true,"fields":{"a":[3,1]},"more":true}`)
		s.wantCallbacks("[gap news:11-10]")
		s.wantFields("at 11: a@3=1 b@11=2")
		p.sendf(`{"type":"state","channel":"news","id":10}`)
		s.wantCallbacks("[fields at 10: a@3=1]")
		s.wantFields("at 10: a@3=1")
	})
}

func TestSubscribeWithOtherOptions(t *testing.T) {
	forEachTransport(t, recordFields, func(s *scenario) {
		p, _ := s.accept()
		s.subscribeState(p, SubscribeOptions{Prefix: "doc/"}, 10)
		p.sendf(`{"type":"state","channel":"news","id":10,"first":true,"fields":{"doc/a":[3,1]}}`)
		s.wantCallbacks("[fields at 10: doc/a@3=1]")

		// The same options send nothing. Presence is added, and the state stays.
		if _, err := s.client.Subscribe(s.Context(), "news", SubscribeOptions{State: true, Prefix: "doc/"}); err != nil {
			s.Fatal(err)
		}
		p.expectNothing()
		if req := s.subscribeState(p, SubscribeOptions{Prefix: "doc/", Presence: true}, 10); !req.Presence || !req.Held {
			s.Fatalf("subscribed with %+v, want presence and held", req)
		}
		p.sendf(`{"type":"message","channel":"news","id":11,"set":{"doc/b":2}}`)
		s.wantCallbacks(`[11  by= set={"doc/b":2}]`)
		s.wantFields("at 11: doc/a@3=1 doc/b@11=2")

		if req := s.subscribeState(p, SubscribeOptions{Prefix: "doc/"}, 11); !req.Held {
			s.Fatal("the fields are not held after a change of the presence")
		}

		if req := s.subscribeState(p, SubscribeOptions{Prefix: "seat/"}, 11); req.State.Prefix != "seat/" || req.Held {
			s.Fatalf("subscribed with %+v, want seat/ and not held", req.StateRequest)
		}
		if _, ok := s.client.Fields("news"); ok {
			s.Fatal("Fields returns the fields of another prefix")
		}
		p.sendf(`{"type":"state","channel":"news","id":11,"first":true,"fields":{"seat/1":[4,1]}}`)
		s.wantCallbacks("[fields at 11: seat/1@4=1]")

		s.subscribe(p, 11) // without the state
		if _, ok := s.client.Fields("news"); ok {
			s.Fatal("Fields returns the fields of a subscription without state")
		}
		p.sendf(`{"type":"message","channel":"news","id":12,"set":{"seat/1":2}}`)
		p.sendf(`{"type":"message","channel":"news","id":13,"set":{"seat/1":3},"data":1}`)
		s.wantCallbacks("[13 1 by= set=null]")
	})
}

func TestSubscribeRefusesAPrefixWithoutState(t *testing.T) {
	c, err := New(Options{URLs: []string{"tcp://h:1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, opts := range []SubscribeOptions{{Prefix: "doc/"}, {State: true, Prefix: "a b"}} {
		if _, err := c.Subscribe(t.Context(), "news", opts); err == nil {
			t.Errorf("%+v was accepted", opts)
		}
	}
}

// TestExpiredFieldsStayUntilTheyAreGone checks that the client's clock does not end a field: a
// renewal may be on its way.
func TestExpiredFieldsStayUntilTheyAreGone(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		until := time.Now().Add(time.Second)
		p, _ := s.accept()
		s.subscribeState(p, SubscribeOptions{}, 10)
		p.sendf(`{"type":"state","channel":"news","id":10,"first":true,"fields":{"a":[3,1,%d]}}`, until.UnixMilli())
		s.takeCallbacks()
		pause(s.Context(), 2*time.Second)
		if f, ok := s.client.Field("news", "a"); !ok || !f.Until.Equal(until) {
			s.Fatalf("the field is %+v, %t; want the end %s", f, ok, until)
		}
		p.sendf(`{"type":"message","channel":"news","id":11,"gone":{"a":"expired"}}`)
		s.takeCallbacks()
		s.wantFields("at 11:")
	})
}

// TestMessagesBetweenPages checks that they are applied after the last page.
func TestMessagesBetweenPages(t *testing.T) {
	forEachTransport(t, recordFields, func(s *scenario) {
		p, _ := s.accept()
		s.subscribeState(p, SubscribeOptions{}, 10)
		p.sendf(`{"type":"state","channel":"news","id":10,"first":true,"fields":{"a":[3,1]},"more":true}`)
		p.sendf(`{"type":"message","channel":"news","id":11,"set":{"a":2}}`)
		p.sendf(`{"type":"state","channel":"news","id":10,"fields":{"b":[4,1]}}`)
		s.wantCallbacks("[fields at 11: a@11=2 b@4=1]")
	})
}

// TestMalformedPage checks that a page which is not understood leaves the last complete state.
func TestMalformedPage(t *testing.T) {
	change := func(s *scenario, o *Options) {
		recordFields(s, o)
		o.OnMessage = func(Message) { <-s.release }
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		s.subscribeState(p, SubscribeOptions{}, 10)
		p.sendf(`{"type":"state","channel":"news","id":10,"first":true,"fields":{"a":[3,1]}}`)
		s.wantCallbacks("[fields at 10: a@3=1]")
		p.sendf(`{"type":"message","channel":"news","id":11,"data":1}`) // makes the pages wait
		p.sendf(`{"type":"state","channel":"news","id":12,"first":true,"fields":{"a":["x"]},"more":true}`)
		p.sendf(`{"type":"state","channel":"news","id":12,"fields":{"b":[4,1]}}`)
		s.wantCallbacks("[]")
		close(s.release)
		s.wantCallbacks("[]")
		s.wantFields("at 11: a@3=1")
	})
}

// TestMissedFieldsAreNotHeld checks the time between a subscribe that was not recovered and its
// pages.
func TestMissedFieldsAreNotHeld(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		s.subscribeState(p, SubscribeOptions{}, 10)
		p.sendf(`{"type":"state","channel":"news","id":10,"first":true}`)
		s.takeCallbacks()
		p.drop()
		p, _ = s.accept()
		p.answer(p.expect(wire.TypeSubscribe), `{"type":"subscribed","channel":"news","id":20,"recovered":false}`)
		s.takeCallbacks()
		p.drop()
		p, _ = s.accept()
		if req := p.expect(wire.TypeSubscribe); *req.After != 20 || req.Held {
			s.Fatalf("subscribed after %d, held %t; want 20, not held", *req.After, req.Held)
		}
	})
}
