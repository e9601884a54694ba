package client

import (
	"testing"
	"time"

	"switchboard/internal/wire"
)

// gated makes OnMessage and OnGap wait at the gate each time.
func gated(s *stage, o *Options) {
	wait := func() {
		select {
		case <-s.gate:
		case <-s.Context().Done():
		}
	}
	o.OnMessage = func(m Message) { s.note("%d", m.ID); wait() }
	o.OnGap = func(g Gap) { s.note("gap %d-%d", g.After, g.ID); wait() }
}

func (p *peer) queued(ids ...int) {
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

func TestAcknowledgesWhatOnMessageHasReturnedFrom(t *testing.T) {
	enact(t, gated, func(s *stage) {
		p, _ := s.accept()
		p.queued(1)
		s.wantSeen("[1]")
		p.quiet()
		s.gate <- struct{}{}
		p.expectAck(1)
		p.queued(2, 3, 4)
		s.wantSeen("[2]")
		for range 3 {
			s.gate <- struct{}{}
		}
		for last := int64(1); last != 4; {
			last = p.expect(wire.TypeAck).ID
		}
	})
}

func TestAcknowledgementsAreCoalesced(t *testing.T) {
	first := func(s *stage, o *Options) {
		o.OnMessage = func(m Message) {
			wait := time.Microsecond // long enough for the writer to write what it may
			if m.ID == 1 {
				wait = ackWithin / 2 // and here for all the rest to arrive
			}
			pause(s.Context(), wait)
		}
	}
	enact(t, first, func(s *stage) {
		p, _ := s.accept()
		for id := 1; id <= 200; id++ {
			p.queued(id)
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
		p.quiet()
	})
}

func TestSlowCallbacksDoNotHoldAcknowledgementsBack(t *testing.T) {
	change := func(s *stage, o *Options) {
		o.OnMessage = func(m Message) { pause(s.Context(), 2*ackWithin/3) }
	}
	enact(t, change, func(s *stage) {
		p, _ := s.accept()
		for id := 1; id <= 30; id++ {
			p.queued(id)
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
	enact(t, nil, func(s *stage) {
		p, _ := s.accept()
		p.queued(1)
		p.expectAck(1)
		p.queued(2)
		p.expectAck(2) // and is lost on the way
		s.wantSeen("[:1 :2]")
		p.drop()
		p, _ = s.accept()
		p.quiet()
		p.queued(2)
		p.expectAck(2)
		p.queued(3)
		p.expectAck(3)
		s.wantSeen("[:3]")
	})
}

func TestDuplicateOfWhatIsInTheCallbackIsNotAcknowledgedEarly(t *testing.T) {
	enact(t, gated, func(s *stage) {
		p, _ := s.accept()
		p.queued(1)
		s.wantSeen("[1]")
		p.drop()
		p, _ = s.accept()
		p.queued(1)
		s.wantSeen("[]")
		p.quiet()
		s.gate <- struct{}{}
		p.expectAck(1)
	})
}

func TestGapOfTheClientQueue(t *testing.T) {
	enact(t, nil, func(s *stage) {
		p, _ := s.accept()
		p.queued(5)
		p.expectAck(5)
		p.sendf(`{"type":"gap","after":5,"id":9}`)
		p.expectAck(9)
		p.sendf(`{"type":"gap","id":3}`)
		p.expectAck(3)
		p.queued(4)
		p.expectAck(4)
		s.wantSeen("[:5 gap :5-9 gap :9-3 :4]")
	})
}

// TestGapBehindALaterMessage: what a failover lost is told when it is found out, and again at every
// connect until something behind it is acknowledged.
func TestGapBehindALaterMessage(t *testing.T) {
	enact(t, nil, func(s *stage) {
		p, _ := s.accept()
		p.queued(9)
		p.expectAck(9)
		p.sendf(`{"type":"gap","after":5,"id":7}`)
		s.wantSeen("[:9 gap :5-7]")
		p.drop()
		p, _ = s.accept()
		p.sendf(`{"type":"gap","after":5,"id":7}`)
		p.queued(8)
		p.expectAck(9)
		p.queued(11)
		p.expectAck(11)
		s.wantSeen("[:11]")
	})
}

func TestMessageFromBeforeAResetIsNotAcknowledged(t *testing.T) {
	enact(t, gated, func(s *stage) {
		p, _ := s.accept()
		p.queued(50)
		s.wantSeen("[50]")
		p.sendf(`{"type":"gap","id":3}`)
		p.queued(4)
		s.wantSeen("[]")
		s.gate <- struct{}{}
		s.wantSeen("[gap 50-3]")
		p.quiet()
		s.gate <- struct{}{}
		s.gate <- struct{}{}
		for last := int64(0); last != 4; {
			last = p.expect(wire.TypeAck).ID
		}
	})
}

func TestAutoAck(t *testing.T) {
	enact(t, func(_ *stage, o *Options) { o.AutoAck = true }, func(s *stage) {
		p, connect := s.accept()
		if connect.Ack != "auto" {
			s.Fatalf("connected with ack %q", connect.Ack)
		}
		p.queued(1, 1)
		p.sendf(`{"type":"gap","id":3}`)
		s.wantSeen("[:1 gap :1-3]")
		p.quiet()
	})
}

func TestStoppingWritesTheLastAcknowledgement(t *testing.T) {
	enact(t, func(s *stage, o *Options) {
		o.OnMessage = func(m Message) {
			if m.ID == 2 { // with 3 behind it, so that its acknowledgement is held back
				s.end()
			}
			pause(s.Context(), ackWithin/2)
		}
	}, func(s *stage) {
		p, _ := s.accept()
		p.queued(1, 2, 3)
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
