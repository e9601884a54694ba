package client

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// TestNewIDStartsANewQueue: the broker assigns another id, since the secret does not match. The
// ids of the new queue are unrelated to the old ones.
func TestNewIDStartsANewQueue(t *testing.T) {
	change := func(_ *scenario, o *Options) { o.Client = "tab" }
	forEachTransport(t, change, func(s *scenario) {
		p := <-s.peers
		first := p.expect("connect")
		if first.Client != "tab" || len(first.Secret) < 16 {
			s.Fatalf("connected with %+v", first)
		}
		p.answer(first, `{"type":"connected","client":"tab","secret":"given by the broker","ping":25}`)
		p.sendQueued(8)
		s.wantCallbacks("[:8]")
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
		p.sendQueued(5)
		s.wantCallbacks("[:5]")
		p.expectAck(5)
		if id, _ := s.client.Identity(); id != "c-1" {
			s.Fatalf("the id is %s", id)
		}
	})
}

// TestConnectOmitsTheUserFromTheID: the user may change with the token, so connect has only the
// name. A client with a user sends no secret.
func TestConnectOmitsTheUserFromTheID(t *testing.T) {
	change := func(_ *scenario, o *Options) { o.Client, o.User = "alice/phone", "alice" }
	forEachTransport(t, change, func(s *scenario) {
		for range 2 {
			p := <-s.peers
			connect := p.expect("connect")
			if connect.Client != "phone" || connect.User != "alice" || connect.Secret != "" {
				s.Fatalf("connected with %+v", connect)
			}
			p.answer(connect, `{"type":"connected","client":"alice/phone","user":"alice","ping":25}`)
			s.wantCallbacks("[]")
			if id, secret := s.client.Identity(); id != "alice/phone" || secret != "" {
				s.Fatalf("the identity is %s, %s", id, secret)
			}
			p.drop()
		}
	})
}

// TestIgnoredTokenIsLogged: a broker without keys for tokens says so, and the client logs it once.
func TestIgnoredTokenIsLogged(t *testing.T) {
	var log bytes.Buffer
	change := func(_ *scenario, o *Options) { o.Token, o.Logger = "a token", zerolog.New(&log) }
	forEachTransport(t, change, func(s *scenario) {
		log.Reset()
		for id := range 2 {
			p := <-s.peers
			p.answer(p.expect("connect"), `{"type":"connected","client":"c-1","ping":25,"token_ignored":true}`)
			p.sendQueued(id + 1)
			s.wantCallbacks(fmt.Sprintf("[:%d]", id+1))
			p.expectAck(int64(id + 1))
			p.drop()
		}
		<-s.peers
		if n := strings.Count(log.String(), "ignored the token"); n != 1 {
			s.Errorf("%d warnings in %s", n, log.String())
		}
	})
}
