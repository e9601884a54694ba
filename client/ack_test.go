package client

import (
	"testing"
	"time"

	"switchboard/internal/wire"
)

// blockCallbacks makes OnMessage and OnGap wait for s.release.
func blockCallbacks(s *scenario, o *Options) {
	wait := func() {
		select {
		case <-s.release:
		case <-s.Context().Done():
		}
	}
	o.OnMessage = func(m Message) { s.record("%d", m.ID); wait() }
	o.OnGap = func(g Gap) { s.record("gap %d-%d", g.After, g.ID); wait() }
}

// sendQueued sends messages of the client queue.
func (p *peer) sendQueued(ids ...int) {
	for _, id := range ids {
		p.sendf(`{"type":"message","id":%d,"data":1}`, id)
	}
}

func (p *peer) expectAck(id int64) {
	p.t.Helper()
	if req := p.expect(wire.TypeAck); req.ID != id {
		p.t.Fatalf("acknowledged %d, want %d", req.ID, id)
	}
}

func TestAcknowledgesAfterOnMessageReturns(t *testing.T) {
	forEachTransport(t, blockCallbacks, func(s *scenario) {
		p, _ := s.accept()
		p.sendQueued(1)
		s.wantCallbacks("[1]")
		p.expectNothing()
		s.release <- struct{}{}
		p.expectAck(1)
		p.sendQueued(2, 3, 4)
		s.wantCallbacks("[2]")
		for range 3 {
			s.release <- struct{}{}
		}
		for last := int64(1); last != 4; {
			last = p.expect(wire.TypeAck).ID
		}
	})
}

func TestAcknowledgementsAreCoalesced(t *testing.T) {
	change := func(s *scenario, o *Options) {
		o.OnMessage = func(m Message) {
			wait := time.Microsecond // long enough for the writer
			if m.ID == 1 {
				wait = ackWithin / 2 // long enough for all other messages to arrive
			}
			pause(s.Context(), wait)
		}
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		for id := 1; id <= 200; id++ {
			p.sendQueued(id)
		}
		last, n := int64(0), 0
		for ; last < 200; n++ {
			req := p.expect(wire.TypeAck)
			if req.ID <= last {
				s.Fatalf("%d was acknowledged after %d", req.ID, last)
			}
			last = req.ID
		}
		if n > 200/ackEvery+2 {
			s.Fatalf("%d acknowledgements for 200 messages", n)
		}
		p.expectNothing()
	})
}

func TestSlowCallbacksDoNotDelayAcknowledgements(t *testing.T) {
	change := func(s *scenario, o *Options) {
		o.OnMessage = func(m Message) { pause(s.Context(), 2*ackWithin/3) }
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		for id := 1; id <= 30; id++ {
			p.sendQueued(id)
		}
		for last := int64(0); last < 30; {
			req := p.expect(wire.TypeAck)
			if req.ID > last+3 {
				s.Fatalf("%d was acknowledged after %d", req.ID, last)
			}
			last = req.ID
		}
	})
}

func TestDuplicateIsDroppedAndAcknowledgedAgain(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		p.sendQueued(1)
		p.expectAck(1)
		p.sendQueued(2)
		p.expectAck(2) // the broker loses it
		s.wantCallbacks("[:1 :2]")
		p.drop()
		p, _ = s.accept()
		p.expectNothing()
		p.sendQueued(2)
		p.expectAck(2)
		p.sendQueued(3)
		p.expectAck(3)
		s.wantCallbacks("[:3]")
	})
}

func TestDuplicateIsNotAcknowledgedDuringTheCallback(t *testing.T) {
	forEachTransport(t, blockCallbacks, func(s *scenario) {
		p, _ := s.accept()
		p.sendQueued(1)
		s.wantCallbacks("[1]")
		p.drop()
		p, _ = s.accept()
		p.sendQueued(1)
		s.wantCallbacks("[]")
		p.expectNothing()
		s.release <- struct{}{}
		p.expectAck(1)
	})
}

func TestGapOfTheClientQueue(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		p.sendQueued(5)
		p.expectAck(5)
		p.sendf(`{"type":"gap","after":5,"id":9}`)
		p.expectAck(9)
		p.sendf(`{"type":"gap","id":3}`)
		p.expectAck(3)
		p.sendQueued(4)
		p.expectAck(4)
		s.wantCallbacks("[:5 gap :5-9 gap :9-3 :4]")
	})
}

// TestGapAfterALaterMessage: the broker reports a loss when it finds it, and again at each connect
// until a later id is acknowledged.
func TestGapAfterALaterMessage(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		p.sendQueued(9)
		p.expectAck(9)
		p.sendf(`{"type":"gap","after":5,"id":7}`)
		s.wantCallbacks("[:9 gap :5-7]")
		p.drop()
		p, _ = s.accept()
		p.sendf(`{"type":"gap","after":5,"id":7}`)
		p.sendQueued(8)
		p.expectAck(9)
		p.sendQueued(11)
		p.expectAck(11)
		s.wantCallbacks("[:11]")
	})
}

func TestMessageFromBeforeAResetIsNotAcknowledged(t *testing.T) {
	forEachTransport(t, blockCallbacks, func(s *scenario) {
		p, _ := s.accept()
		p.sendQueued(50)
		s.wantCallbacks("[50]")
		p.sendf(`{"type":"gap","id":3}`)
		p.sendQueued(4)
		s.wantCallbacks("[]")
		s.release <- struct{}{}
		s.wantCallbacks("[gap 50-3]")
		p.expectNothing()
		s.release <- struct{}{}
		s.release <- struct{}{}
		for last := int64(0); last != 4; {
			last = p.expect(wire.TypeAck).ID
		}
	})
}

func TestAutoAck(t *testing.T) {
	forEachTransport(t, func(_ *scenario, o *Options) { o.AutoAck = true }, func(s *scenario) {
		p, connect := s.accept()
		if connect.Ack != "auto" {
			s.Fatalf("connected with ack %q", connect.Ack)
		}
		p.sendQueued(1, 1)
		p.sendf(`{"type":"gap","id":3}`)
		s.wantCallbacks("[:1 gap :1-3]")
		p.expectNothing()
	})
}

func TestRunWritesTheLastAcknowledgement(t *testing.T) {
	forEachTransport(t, func(s *scenario, o *Options) {
		o.OnMessage = func(m Message) {
			if m.ID == 2 { // message 3 waits, so the acknowledgement is delayed
				s.end()
			}
			pause(s.Context(), ackWithin/2)
		}
	}, func(s *scenario) {
		p, _ := s.accept()
		p.sendQueued(1, 2, 3)
		if err := <-s.result; err != nil {
			s.Fatal(err)
		}
		last := int64(0)
		for req := range p.in {
			last = req.ID
		}
		if last != 2 {
			s.Fatalf("acknowledged up to %d, want 2", last)
		}
	})
}
