package client

import (
	"fmt"
	"testing"
	"time"

	"switchboard/internal/wire"
)

func TestResumesEachChannelFromTheLastID(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, connect := s.accept()
		if connect.After != nil {
			s.Fatalf("the first connect has a position: %d", *connect.After)
		}
		s.subscribe(p, 10)
		for _, m := range []string{`"channel":"news","id":11`, `"channel":"$all","id":5`, `"channel":"news","id":12`, `"channel":"other","id":1`} {
			p.sendf(`{"type":"message",%s,"data":1}`, m)
		}
		s.wantCallbacks("[news:11 $all:5 news:12]")
		p.drop()

		p, connect = s.accept()
		if connect.After == nil || *connect.After != 5 || connect.Client != "phone" {
			s.Fatalf("connected again with %+v, want after 5 as phone", connect)
		}
		req := p.expect(wire.TypeSubscribe)
		if req.After == nil || *req.After != 12 {
			s.Fatalf("subscribed again with %+v, want after 12", req)
		}
		p.sendf(`{"type":"message","channel":"news","id":14,"data":"before subscribed"}`)
		p.answer(req, `{"type":"subscribed","channel":"news","id":12,"recovered":true}`)
		for _, id := range []int{12, 13, 13, 14, 11} {
			p.sendf(`{"type":"message","channel":"news","id":%d,"data":1}`, id)
		}
		s.wantCallbacks("[news:13 news:14]")
		p.expectNothing()
	})
}

func TestResumesFromTheStartWithoutMessages(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		s.subscribe(p, 10)
		p.drop()
		p, _ = s.accept()
		if req := p.expect(wire.TypeSubscribe); req.After == nil || *req.After != 10 {
			s.Fatalf("subscribed again with %+v, want after 10", req)
		}
	})
}

func TestResetAfterAFailover(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		s.subscribe(p, 10)
		p.sendf(`{"type":"message","channel":"news","id":20,"data":1}`)
		s.wantCallbacks("[news:20]")
		p.drop()
		p, _ = s.accept()
		p.answer(p.expect(wire.TypeSubscribe), `{"type":"subscribed","channel":"news","id":15,"recovered":false}`)
		p.sendf(`{"type":"message","channel":"news","id":15,"data":1}`)
		p.sendf(`{"type":"message","channel":"news","id":16,"data":1}`)
		s.wantCallbacks("[gap news:20-15 news:16]")
		p.sendf(`{"type":"gap","channel":"news","after":16,"id":3}`)
		p.sendf(`{"type":"message","channel":"news","id":4,"data":1}`)
		s.wantCallbacks("[gap news:16-3 news:4]")
		p.sendf(`{"type":"gap","channel":"$all","id":2}`)
		p.sendf(`{"type":"message","channel":"$all","id":3,"data":1}`)
		s.wantCallbacks("[gap $all:0-2 $all:3]")
		p.drop()
		p, connect := s.accept()
		if *connect.After != 3 {
			s.Fatalf("after %d on $all, want 3", *connect.After)
		}
		if req := p.expect(wire.TypeSubscribe); *req.After != 4 {
			s.Fatalf("after %d, want 4", *req.After)
		}
	})
}

func TestConnectedSetsThePositionOfAllChannel(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p := <-s.peers
		p.answer(p.expect(wire.TypeConnect), `{"type":"connected","client":"phone","id":8,"ping":25}`)
		s.wantCallbacks("[]")
		p.drop()
		p = <-s.peers
		req := p.expect(wire.TypeConnect)
		if req.After == nil || *req.After != 8 {
			s.Fatalf("connected again with %+v, want after 8", req)
		}
		p.answer(req, `{"type":"connected","client":"phone","id":6,"recovered":false,"ping":25}`)
		p.sendf(`{"type":"message","channel":"$all","id":7,"data":1}`)
		s.wantCallbacks("[gap $all:8-6 $all:7]")
	})
}

func TestSubscribeSurvivesALostConnection(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		done := make(chan string)
		go func() {
			got, err := s.client.Subscribe(s.Context(), "news", SubscribeOptions{After: new(int64(4))})
			done <- fmt.Sprint(got, err)
		}()
		p.expect(wire.TypeSubscribe)
		p.drop()
		p, _ = s.accept()
		req := p.expect(wire.TypeSubscribe)
		p.expectNothing()
		p.answer(req, `{"type":"subscribed","channel":"news","id":4,"recovered":true}`)
		if got := <-done; got != "{news 4 true} <nil>" {
			s.Fatal(got)
		}
		if got, err := s.client.Subscribe(s.Context(), "news", SubscribeOptions{}); err != nil || got.ID != 4 {
			s.Fatalf("the second Subscribe got %+v, %v", got, err)
		}
		p.expectNothing()
	})
}

// TestSubscribeFromAnotherPosition: the broker continues a subscription that it has, so the client
// ends it first.
func TestSubscribeFromAnotherPosition(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		s.subscribe(p, 8)
		done := make(chan string)
		go func() {
			got, err := s.client.Subscribe(s.Context(), "news", SubscribeOptions{After: new(int64(4))})
			done <- fmt.Sprint(got, err)
		}()
		end := p.expect(wire.TypeUnsubscribe)
		p.sendf(`{"type":"message","channel":"news","id":9,"data":1}`) // of the subscription that ends
		p.answer(end, `{"type":"unsubscribed","channel":"news"}`)
		req := p.expect(wire.TypeSubscribe)
		if req.After == nil || *req.After != 4 {
			s.Fatalf("subscribed again with %+v, want after 4", req)
		}
		p.answer(req, `{"type":"subscribed","channel":"news","id":4,"recovered":true}`)
		p.sendf(`{"type":"message","channel":"news","id":5,"data":1}`)
		p.sendf(`{"type":"message","channel":"news","id":9,"data":1}`)
		s.wantCallbacks("[news:5 news:9]")
		if got := <-done; got != "{news 4 true} <nil>" {
			s.Fatal(got)
		}
	})
}

func TestUnsubscribeSurvivesReconnects(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		s.subscribe(p, 1)
		done := make(chan error)
		go func() { done <- s.client.Unsubscribe(s.Context(), "news") }()
		p.expect(wire.TypeUnsubscribe)
		p.sendf(`{"type":"message","channel":"news","id":2,"data":1}`)
		s.wantCallbacks("[]")
		p.drop()
		if err := <-done; err != nil {
			s.Fatal(err)
		}
		p, _ = s.accept()
		p.expectNothing()
		if err := s.client.Unsubscribe(s.Context(), "news"); err != nil {
			s.Fatal(err)
		}
		p.expectNothing()
	})
}

func TestRefusedResubscription(t *testing.T) {
	change := func(s *scenario, o *Options) {
		o.OnUnsubscribed = func(channel string, err *Error) { s.record("lost %s: %s", channel, err.Code) }
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		s.subscribe(p, 1)
		p.drop()
		p, _ = s.accept()
		p.answer(p.expect(wire.TypeSubscribe), `{"type":"error","code":"unavailable"}`)
		again := p.expect(wire.TypeSubscribe)
		if *again.After != 1 {
			s.Fatalf("asked again from %d, want 1", *again.After)
		}
		p.answer(again, `{"type":"error","code":"forbidden"}`)
		s.wantCallbacks("[lost news: forbidden]")
		p.drop()
		p, _ = s.accept()
		p.expectNothing()
	})
}

// TestResubscriptionOverALimit: after_ms is the least delay, and `"retry":false` ends the
// subscription, because waiting would not help.
func TestResubscriptionOverALimit(t *testing.T) {
	change := func(s *scenario, o *Options) {
		o.OnUnsubscribed = func(channel string, err *Error) { s.record("lost %s: %s %t", channel, err.Code, err.Retryable()) }
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		s.subscribe(p, 1)
		p.drop()
		p, _ = s.accept()
		refused := p.expect(wire.TypeSubscribe)
		before := time.Now()
		p.answer(refused, `{"type":"error","code":"rate_limited","after_ms":9000}`)
		again := p.expect(wire.TypeSubscribe)
		if waited := time.Since(before); waited < 9*time.Second {
			s.Errorf("subscribed again after %s, want 9s at least", waited)
		}
		p.answer(again, `{"type":"error","code":"rate_limited","retry":false}`)
		s.wantCallbacks("[lost news: rate_limited false]")
	})
}

// TestBrokerEndsASubscription: the broker sends an `unsubscribed` without ref.
func TestBrokerEndsASubscription(t *testing.T) {
	change := func(s *scenario, o *Options) {
		o.OnUnsubscribed = func(channel string, err *Error) { s.record("lost %s: %s", channel, err.Code) }
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		s.subscribe(p, 1)
		p.sendf(`{"type":"unsubscribed","channel":"other","code":"forbidden","message":"no"}`)
		p.sendf(`{"type":"unsubscribed","channel":"news","code":"forbidden","message":"no"}`)
		s.wantCallbacks("[lost news: forbidden]")
		p.drop()
		p, _ = s.accept()
		p.expectNothing()
	})
}
