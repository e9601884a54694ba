package client

import (
	"testing"

	"switchboard/internal/wire"
)

// recordSubscriptions records OnSubscribed and OnUnsubscribed.
func recordSubscriptions(s *scenario, o *Options) {
	o.OnSubscribed = func(got Subscription) { s.record("subscribed %s:%d", got.Channel, got.ID) }
	o.OnUnsubscribed = func(channel string, err *Error) { s.record("unsubscribed %s %s", channel, err.Code) }
}

// TestBackendSubscribes has a client that the backend subscribes. The subscription is kept over a
// reconnect, from the position that the client has seen, until the backend ends it.
func TestBackendSubscribes(t *testing.T) {
	forEachTransport(t, recordSubscriptions, func(s *scenario) {
		p, _ := s.accept()
		p.sendf(`{"type":"subscribed","channel":"news","id":10}`)
		p.sendf(`{"type":"message","channel":"news","id":11,"data":1}`)
		s.wantCallbacks("[subscribed news:10 news:11]")
		p.drop()

		p, _ = s.accept()
		p.sendf(`{"type":"subscribed","channel":"news","id":13}`)
		p.sendf(`{"type":"message","channel":"news","id":14,"data":1}`) // it comes again after the answer
		req := p.expect(wire.TypeSubscribe)
		if req.After == nil || *req.After != 11 {
			s.Fatalf("subscribed again with %+v, want after 11", req)
		}
		p.answer(req, `{"type":"subscribed","channel":"news","id":14,"recovered":true}`)
		for id := 12; id <= 14; id++ {
			p.sendf(`{"type":"message","channel":"news","id":%d,"data":1}`, id)
		}
		s.wantCallbacks("[news:12 news:13 news:14]")
		p.sendf(`{"type":"unsubscribed","channel":"news","code":"forbidden","message":"the backend ended it"}`)
		s.wantCallbacks("[unsubscribed news forbidden]")
		p.drop()
		p, _ = s.accept()
		p.expectNothing()
	})
}
