package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/internal/wire"
)

func TestShowHereSendsTheNewestValue(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		show := func(value any) {
			s.Helper()
			if err := s.client.ShowHere("news", value); err != nil {
				s.Fatal(err)
			}
		}
		want := func(p *peer, data string) {
			s.Helper()
			if req := p.expect(wire.TypeHere); req.Channel != "news" || string(req.Data) != data {
				s.Fatalf("sent %s for %s, want %s", req.Data, req.Channel, data)
			}
		}
		show(0)
		p := <-s.peers
		connect := p.expect(wire.TypeConnect)
		p.expectNothing()
		p.answer(connect, `{"type":"connected","client":"phone","ping":25}`)
		want(p, "0")
		s.subscribe(p, 10)
		pause(s.Context(), hereEvery)
		show(1)
		want(p, "1")
		show(2)
		show(3)
		p.expectNothing()
		pause(s.Context(), hereEvery)
		want(p, "3")
		pause(s.Context(), time.Minute/6)
		p.expectNothing()
		show(4)
		want(p, "4")
		p.drop()

		p, _ = s.accept() // the new connection shows the value again, after the subscription
		p.expect(wire.TypeSubscribe)
		want(p, "4")
		pause(s.Context(), time.Second)
		show(nil)
		want(p, "null")
		p.drop()
		p, _ = s.accept()
		p.expect(wire.TypeSubscribe)
		p.expectNothing()
	})
}

func TestUnsubscribeEndsHere(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		s.subscribe(p, 10)
		for range 2 { // the second value waits
			if err := s.client.ShowHere("news", 1); err != nil {
				s.Fatal(err)
			}
		}
		p.expect(wire.TypeHere)
		go func() { p.answer(p.expect(wire.TypeUnsubscribe), `{"type":"unsubscribed"}`) }()
		if err := s.client.Unsubscribe(s.Context(), "news"); err != nil {
			s.Fatal(err)
		}
		pause(s.Context(), time.Second)
		p.expectNothing()
	})
}

func TestShowHereRefusesInvalidValues(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		s.accept()
		for _, err := range []error{
			s.client.ShowHere("", 1), s.client.ShowHere(AllChannel, 1), s.client.ShowHere("news", func() {}),
			s.client.ShowHere("news", strings.Repeat("x", maxHere)),
		} {
			if err == nil {
				s.Fatal("an invalid value was accepted")
			}
		}
		s.end()
		<-s.result
		if err := s.client.ShowHere("news", 1); !errors.Is(err, ErrStopped) {
			s.Fatal(err)
		}
	})
}

func TestMembers(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		got := make(chan string)
		go func() {
			for m, err := range s.client.Members(s.Context(), "news") {
				got <- fmt.Sprintf("%s %s %v", m.Client, m.Here, err)
			}
			close(got)
		}()
		p.answer(p.expect(wire.TypePresence), `{"type":"presence","clients":[{"client":"a","here":1},{"client":"b"}],"count":3,"next":"b"}`)
		for _, want := range []string{"a 1 <nil>", "b  <nil>"} {
			if m := <-got; m != want {
				s.Fatalf("got %s, want %s", m, want)
			}
		}
		req := p.expect(wire.TypePresence)
		if req.Cursor != "b" || req.Channel != "news" {
			s.Fatalf("asked for %+v", req)
		}
		p.answer(req, `{"type":"error","code":"forbidden","message":"m"}`)
		if m := <-got; m != "  members of news: forbidden: m" {
			s.Fatal(m)
		}
		if m, more := <-got; more {
			s.Fatalf("%s after an error", m)
		}
	})
}

func TestPresence(t *testing.T) {
	change := func(s *scenario, o *Options) {
		o.OnPresence = func(p Presence) {
			raw, _ := json.Marshal(p)
			s.record("%s", raw)
		}
		o.OnHere = func(h Here) { s.record("%+v", fmt.Sprintf("%s %s %s %s", h.Channel, h.Client, h.User, h.Data)) }
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		p.sendf(`{"type":"join","channel":"news","client":"early"}`)
		s.wantCallbacks("[]")
		s.subscribeState(p, SubscribeOptions{Presence: true}, 10)
		p.sendf(`{"type":"join","channel":"news","client":"bob/tab","user":"bob","info":{"a":1}}`)
		p.sendf(`{"type":"leave","channel":"news","client":"bob/tab","user":"bob"}`)
		p.sendf(`{"type":"presence","channel":"news","count":300,"users":9,"joined":[{"client":"x"}]}`)
		p.sendf(`{"type":"presence","channel":"news","count":0,"users":0,"clients":[]}`)
		s.wantCallbacks(`[{"Channel":"news","Joined":[{"client":"bob/tab","user":"bob","info":{"a":1}}],"Left":null,"All":null,"Count":0} ` +
			`{"Channel":"news","Joined":null,"Left":[{"client":"bob/tab","user":"bob"}],"All":null,"Count":0} ` +
			`{"Channel":"news","Joined":[{"client":"x"}],"Left":null,"All":null,"Count":300} ` +
			`{"Channel":"news","Joined":null,"Left":null,"All":[],"Count":0}]`)
		p.sendf(`{"type":"here","channel":"news","client":"tab-2","user":"bob","data":{"x":4}}`)
		p.sendf(`{"type":"here","channel":"news","client":"tab-2","user":"bob","data":null}`)
		s.wantCallbacks(`[news tab-2 bob {"x":4} news tab-2 bob ]`)
	})
}
