package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/wire"
)

func TestUpdateEncodesItsClauses(t *testing.T) {
	for _, tc := range []struct {
		want    string
		clauses []Clause
	}{
		{`{"set":{"turn":"amy","b":{"n":1}},"del":["x","y"]}`, []Clause{Set("turn", "amy"), Del("x"), Set("b", map[string]int{"n": 1}), Del("y")}},
		{`{"add":{"n":2,"m":{"by":-1,"max":9007199254740991,"min":0}}}`, []Clause{Add("n", 2), AddWithin("m", -1, 0, MaxNumber)}},
		{`{"touch":["seat/A1"],"ttl":90}`, []Clause{Touch("seat/A1"), TTL(90 * time.Second)}},
		{`{"set":{"a":1},"ttl":0.5,"own":true}`, []Clause{Set("a", 1), TTL(time.Second / 2), Own()}},
		{`{"set":{"a":1},"ttl":0,"own":false}`, []Clause{Set("a", 1), TTL(0), Disown()}},
		{`{"set":{"a":null},"if":{"a":7,"b":0,"c":true}}`, []Clause{Set("a", nil), IfID("a", 7), IfAbsent("b"), IfExists("c")}},
		{`{"add":{"n":1},"key":"k1","durable":true}`, []Clause{Add("n", 1), Key("k1"), Durable()}},
		{`{"data":{"move":"e4"},"set":{"p/1/x":1},"of":{"p/1/x":"member/1"},"key":"k1"}`,
			[]Clause{Data(map[string]string{"move": "e4"}), Set("p/1/x", 1), Of("p/1/x", "member/1"), Key("k1")}},
	} {
		t.Run(tc.want, func(t *testing.T) {
			forEachTransport(t, nil, func(s *scenario) {
				p, _ := s.accept()
				done := make(chan error)
				go func() { _, err := s.client.Update(s.Context(), "room:7", tc.clauses...); done <- err }()
				req := p.expect(wire.TypePublish)
				p.answer(req, `{"type":"published","id":7}`)
				if err := <-done; err != nil {
					s.Fatal(err)
				}
				if req.Channel != "room:7" {
					s.Fatalf("published to %s", req.Channel)
				}
				req.Type, req.Channel, req.Ref = "", "", wire.Ref{}
				got, err := json.Marshal(req)
				if err != nil {
					s.Fatal(err)
				}
				if want := `{"type":"",` + tc.want[1:]; string(got) != want {
					s.Fatalf("sent %s, want %s", got, want)
				}
			})
		})
	}
}

func TestUpdateRefusesInvalidClauses(t *testing.T) {
	c, err := New(Options{URLs: []string{"tcp://h:1"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, clauses := range map[string][]Clause{
		"name":       {Set("a b", 1)},
		"value":      {Set("a", func() {})},
		"set twice":  {Set("a", 1), Set("a", 2)},
		"add twice":  {Add("a", 1), AddWithin("a", 1, 0, 2)},
		"two ifs":    {IfAbsent("a"), IfExists("a")},
		"del":        {Del("a", "")},
		"touch":      {Touch("a\n")},
		"parent":     {Of("a", "")},
		"ttl":        {TTL(-1)},
		"data":       {Data(make(chan int))},
		"if of name": {IfID("", 1)},
	} {
		if _, err := c.Update(t.Context(), "news", clauses...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := c.Update(t.Context(), "", Set("a", 1)); err == nil {
		t.Error("an empty channel was accepted")
	}
}

func TestUpdateReturnsNumbers(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		done := make(chan string)
		go func() {
			got, err := s.client.Update(s.Context(), "news", Add("n", 1), Add("m", 2))
			done <- fmt.Sprint(got, err)
		}()
		p.answer(p.expect(wire.TypePublish), `{"type":"published","id":7,"fields":{"n":3,"m":-4}}`)
		if got := <-done; got != "{7 map[m:-4 n:3]} <nil>" {
			s.Fatal(got)
		}
	})
}

func TestRefusedUpdateShowsTheFields(t *testing.T) {
	for _, tc := range []struct{ answer, want string }{
		{`"code":"conflict","message":"m","fields":{"turn":[5,"amy"],"seat":null}`, `conflict group= max=0 seat=absent turn=5:"amy"`},
		{`"code":"conflict","message":"the connection has ended"`, `conflict group= max=0`},
		{`"code":"full","message":"m","group":"member/","max":2,"fields":{"member/a":[1,{"n":1},99,"away"],"member/b":[2]}`,
			`full group=member/ max=2 member/a=1:{"n":1}(away until 99) member/b=2:`},
		{`"code":"limit","message":"m","fields":{"n":[5,4]}`, `limit group= max=0 n=5:4`},
		{`"code":"not_found","message":"field x: there is no such field"`, `*wire.Error`},
		{`"code":"forbidden","message":"m"`, `*wire.Error`},
	} {
		t.Run(tc.want, func(t *testing.T) {
			forEachTransport(t, nil, func(s *scenario) {
				p, _ := s.accept()
				done := make(chan error)
				go func() { _, err := s.client.Update(s.Context(), "news", Set("turn", "bob")); done <- err }()
				p.answer(p.expect(wire.TypePublish), `{"type":"error",%s}`, tc.answer)
				err := <-done
				plain, ok := errors.AsType[*Error](err)
				if !ok {
					s.Fatalf("%v is no *Error", err)
				}
				got := fmt.Sprintf("%T", plain)
				if refused, ok := errors.AsType[*Refusal](err); ok {
					got = describeRefusal(refused)
				}
				if got != tc.want {
					s.Fatalf("got %s, want %s", got, tc.want)
				}
			})
		})
	}
}

func describeRefusal(r *Refusal) string {
	text := fmt.Sprintf("%s group=%s max=%d", r.Err.Code, r.Group, r.Max)
	for _, name := range []string{"member/a", "member/b", "n", "seat", "turn"} {
		f, shown := r.Fields[name]
		switch {
		case shown && f == nil:
			text += fmt.Sprintf(" %s=absent", name)
		case shown:
			if text += fmt.Sprintf(" %s=%d:%s", name, f.ID, f.Value); f.Away {
				text += fmt.Sprintf("(away until %d)", f.Until.UnixMilli())
			}
		}
	}
	return text
}

func TestUpdateWithAKeyIsRepeated(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		s.subscribeState(p, SubscribeOptions{}, 10)
		done := make(chan string)
		go func() {
			got, err := s.client.Update(s.Context(), "news", Set("a", 1), Own(), Key("k"))
			done <- fmt.Sprint(got.ID, err)
		}()
		first := p.expect(wire.TypePublish)
		p.drop()
		p, _ = s.accept()
		p.expect(wire.TypeSubscribe) // before the update, which needs it
		again := p.expect(wire.TypePublish)
		if again.Ref != first.Ref || again.Key != "k" {
			s.Fatalf("sent again: %+v", again)
		}
		p.answer(again, `{"type":"published","id":7}`)
		if got := <-done; got != "7 <nil>" {
			s.Fatal(got)
		}
	})
}

func TestUpdateWithAnOldKeyIsNotRepeated(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		done := make(chan error, 1)
		go func() { _, err := s.client.Update(s.Context(), "news", Set("a", 1), Key("k")); done <- err }()
		p.expect(wire.TypePublish)
		s.mu.Lock()
		s.down = true
		s.mu.Unlock()
		p.drop()
		pause(s.Context(), repeatWithin+time.Second)
		s.mu.Lock()
		s.down = false
		s.mu.Unlock()
		p, _ = s.accept()
		p.expectNothing()
		if err := <-done; !errors.Is(err, ErrUnknownOutcome) {
			s.Fatalf("error %v, want an unknown outcome", err)
		}
	})
}

func TestUpdateWithAKeyHasAnUnknownOutcomeAtTheEnd(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		done := make(chan error, 1)
		go func() { _, err := s.client.Update(s.Context(), "news", Set("a", 1), Key("k")); done <- err }()
		p.expect(wire.TypePublish)
		s.end()
		if err := <-done; !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, ErrStopped) {
			s.Fatalf("error %v, want an unknown outcome of a stopped client", err)
		}
		synctest.Wait()
	})
}

func TestReadFields(t *testing.T) {
	forEachTransport(t, recordFields, func(s *scenario) {
		p, _ := s.accept()
		s.subscribeState(p, SubscribeOptions{}, 10)
		got := make(chan string)
		go func() {
			for page, err := range s.client.FieldsPages(s.Context(), "news", FieldsQuery{Prefix: "seat/", Limit: 2}) {
				got <- fmt.Sprint(describe(page.Snapshot), " ", err)
			}
			close(got)
		}()
		req := p.expect(wire.TypeState)
		if req.Prefix != "seat/" || req.Cursor != "" || req.Limit != 2 {
			s.Fatalf("asked for %+v", req)
		}
		p.answer(req, `{"type":"state","channel":"news","id":12,"fields":{"seat/1":[3,1],"seat/2":[4,2]},"cursor":"seat/2"}`)
		if page := <-got; page != "at 12: seat/1@3=1 seat/2@4=2 <nil>" {
			s.Fatal(page)
		}
		if req = p.expect(wire.TypeState); req.Cursor != "seat/2" {
			s.Fatalf("asked for %+v", req)
		}
		p.drop() // the request is repeated
		p, _ = s.accept()
		p.expect(wire.TypeSubscribe)
		p.answer(p.expect(wire.TypeState), `{"type":"state","channel":"news","id":13}`)
		if page := <-got; page != "at 13: <nil>" {
			s.Fatal(page)
		}
		if page, more := <-got; more {
			s.Fatalf("a page after the last one: %s", page)
		}
		s.wantCallbacks("[]") // answers are not folded in
		if _, ok := s.client.Fields("news"); ok {
			s.Fatal("an answer has changed the fields")
		}
	})
}

func TestReadFieldsEndsAtAnError(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		got := make(chan error, 9)
		go func() {
			for _, err := range s.client.FieldsPages(s.Context(), "news", FieldsQuery{}) {
				got <- err
			}
			close(got)
		}()
		p.answer(p.expect(wire.TypeState), `{"type":"error","code":"forbidden"}`)
		if refusal, ok := errors.AsType[*Error](<-got); !ok || refusal.Code != Forbidden {
			s.Fatal(refusal)
		}
		if err, more := <-got; more {
			s.Fatal(err)
		}
	})
}
