package client

import "testing"

// TestAnotherIdBeginsAnew: the broker gave another id than before, since the secret is not that of
// the old one; the ids of that queue are others.
func TestAnotherIdBeginsAnew(t *testing.T) {
	change := func(_ *stage, o *Options) { o.Client = "tab" }
	enact(t, change, func(s *stage) {
		p := <-s.peers
		first := p.expect("connect")
		if first.Client != "tab" || len(first.Secret) < 16 {
			s.Fatalf("connected with %+v", first)
		}
		p.answer(first, `{"type":"connected","client":"tab","secret":"given by the broker","ping":25}`)
		p.queued(8)
		s.wantSeen("[:8]")
		p.expectAck(8)
		if id, secret := s.client.Identity(); id != "tab" || secret != "given by the broker" {
			s.Fatalf("the identity is %s, %s", id, secret)
		}
		p.drop()

		p = <-s.peers
		again := p.expect("connect")
		if again.Client != "tab" || again.Secret != "given by the broker" {
			s.Fatalf("connected again with %+v", again)
		}
		p.answer(again, `{"type":"connected","client":"c-1","secret":"another","ping":25}`)
		p.queued(5)
		s.wantSeen("[:5]")
		p.expectAck(5)
		if id, _ := s.client.Identity(); id != "c-1" {
			s.Fatalf("the id is %s", id)
		}
	})
}

// TestUserGivesTheClientPart: the user may change with the token, so the id goes without it; a
// client with a user needs no secret.
func TestUserGivesTheClientPart(t *testing.T) {
	change := func(_ *stage, o *Options) { o.Client, o.User = "alice/phone", "alice" }
	enact(t, change, func(s *stage) {
		for range 2 {
			p := <-s.peers
			connect := p.expect("connect")
			if connect.Client != "phone" || connect.User != "alice" || connect.Secret != "" {
				s.Fatalf("connected with %+v", connect)
			}
			p.answer(connect, `{"type":"connected","client":"alice/phone","user":"alice","ping":25}`)
			s.wantSeen("[]")
			if id, secret := s.client.Identity(); id != "alice/phone" || secret != "" {
				s.Fatalf("the identity is %s, %s", id, secret)
			}
			p.drop()
		}
	})
}
