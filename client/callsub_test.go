package client

import (
	"errors"
	"testing"

	"switchboard/internal/wire"
)

// TestCallAndSubscribe checks that the subscribe is sent right after the call, before its reply. A
// refused call leaves no subscription, unless there was one before, or the refusal is one after
// which the caller may try again.
func TestCallAndSubscribe(t *testing.T) {
	for _, before := range []bool{false, true} {
		for _, code := range []ErrorCode{"", Full, Unavailable} {
			refused := code != ""
			forEachTransport(t, nil, func(s *scenario) {
				p, _ := s.accept()
				if before {
					s.subscribe(p, 3)
				}
				channel := map[bool]string{true: "news", false: "room:r"}[before]
				var into struct{ N int }
				done := make(chan error, 1)
				go func() {
					done <- s.client.CallAndSubscribe(s.Context(), "room.join", "r", &into, channel, SubscribeOptions{State: true})
				}()
				call, subscribe := p.expect(wire.TypeRequest), p.expect(wire.TypeSubscribe)
				if refused {
					p.answer(call, `{"type":"error","code":%q,"message":"no"}`, code)
				} else {
					p.answer(call, `{"type":"reply","data":{"N":7}}`)
				}
				p.answer(subscribe, `{"type":"subscribed","channel":%q,"id":9}`, channel)
				p.sendf(`{"type":"state","channel":%q,"id":9,"first":true,"fields":{}}`, channel)
				err := <-done
				e, _ := errors.AsType[*Error](err)
				if refused != (e != nil && e.Code == code) || !refused && (err != nil || into.N != 7) {
					t.Errorf("the call returned %v, and N is %d", err, into.N)
				}
				ends := code == Full && !before
				if ends {
					if got := p.expect(wire.TypeUnsubscribe); got.Channel != channel {
						t.Errorf("unsubscribed from %s", got.Channel)
					}
				}
				p.expectNothing()
				s.client.mu.Lock()
				defer s.client.mu.Unlock()
				if kept := s.client.subs[channel] != nil; kept == ends {
					t.Errorf("before %t, code %q: the subscription is kept: %t", before, code, kept)
				}
			})
		}
	}
}

// TestCallAndSubscribeChecks checks that nothing is sent with invalid arguments.
func TestCallAndSubscribeChecks(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		for _, err := range []error{
			s.client.CallAndSubscribe(s.Context(), "", nil, nil, "c", SubscribeOptions{}),
			s.client.CallAndSubscribe(s.Context(), "room.join", nil, nil, "", SubscribeOptions{}),
			s.client.CallAndSubscribe(s.Context(), "room.join", nil, nil, "c", SubscribeOptions{Prefix: "p/"}),
			s.client.CallAndSubscribe(s.Context(), "room.join", func() {}, nil, "c", SubscribeOptions{}),
		} {
			if err == nil {
				t.Error("no error")
			}
		}
		p.expectNothing()
	})
}
