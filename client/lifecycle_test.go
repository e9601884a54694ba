package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/wire"
)

func TestCloseReasons(t *testing.T) {
	for reason, reconnects := range map[CloseReason]bool{
		CloseDraining: true, CloseSuperseded: false, CloseUnauthorized: false, CloseExpired: false, // there is no other token
		CloseDisconnected: false, CloseBadRequest: false, CloseSlow: true, CloseIdle: true, CloseOverloaded: true,
	} {
		t.Run(string(reason), func(t *testing.T) {
			forEachTransport(t, nil, func(s *scenario) {
				p, _ := s.accept()
				p.close(reason)
				if reconnects {
					s.accept()
					return
				}
				err := <-s.result
				if closed, ok := errors.AsType[*ClosedError](err); !ok || closed.Reason != reason || closed.Reconnect {
					s.Fatalf("Run returned %v, want %s and no reconnect", err, reason)
				}
			})
		})
	}
}

func TestClosingMessageOverridesTheDefaults(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		p.send(`{"type":"closing","code":"superseded","reconnect":true}`)
		p, _ = s.accept()
		p.send(`{"type":"closing","code":"of a later version"}`)
		p, _ = s.accept()
		p.send(`{"type":"closing","code":"draining","message":"the server shuts down","reconnect":false}`)
		if err := fmt.Sprint(<-s.result); err != "closed by the broker: draining: the server shuts down" {
			s.Fatalf("Run returned %s", err)
		}
	})
}

func TestHonoursRetryDelay(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		for _, tc := range []struct {
			asked int64
			want  time.Duration
		}{{asked: 61_840, want: 61_840 * time.Millisecond}, {asked: 1 << 60, want: maxRetryDelay}} {
			p, _ := s.accept()
			p.sendf(`{"type":"closing","code":"draining","reconnect":true,"after_ms":%d}`, tc.asked)
			synctest.Wait()
			start := time.Now()
			s.peers <- <-s.peers
			if waited := time.Since(start); waited != tc.want {
				s.Fatalf("reconnected after %s, want %s", waited, tc.want)
			}
		}
	})
}

func TestIdleTimeoutEndsAConnection(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		start := time.Now()
		for range 10 {
			pause(s.Context(), 60*time.Second) // less than 2.5 intervals
			p.ping()
			synctest.Wait()
		}
		if len(s.peers) > 0 {
			s.Fatal("a ping did not reset the idle timeout")
		}
		<-s.peers
		silent := time.Since(start) - 600*time.Second
		if silent < 62500*time.Millisecond || silent > 64*time.Second {
			s.Fatalf("gave up after %s of silence, want 2.5 × 25 s and the backoff", silent)
		}
	})
}

func TestUnansweredConnectTimesOut(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		start := time.Now()
		(<-s.peers).expect(wire.TypeConnect)
		<-s.peers
		if waited := time.Since(start); waited < connectTimeout || waited > connectTimeout+time.Second {
			s.Fatalf("gave up after %s", waited)
		}
	})
}

func TestPingMessageIsAnswered(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		p.send(`{"type":"ping"}`)
		p.expect(wire.TypePong)
	})
}

// tokens sets a TokenSource that fails once, and then returns t1, t2, …
func tokens(s *scenario, o *Options) {
	n := 0
	o.TokenSource = func(context.Context) (string, error) {
		if n++; n == 1 {
			return "", errors.New("not now")
		}
		return fmt.Sprintf("t%d", n-1), nil
	}
}

func TestTokenSourceIsCalledAfterExpiry(t *testing.T) {
	forEachTransport(t, tokens, func(s *scenario) {
		for i, tc := range []struct {
			want string
			end  func(p *peer)
		}{
			{want: "t1", end: func(p *peer) { p.drop() }},
			{want: "t1", end: func(p *peer) { p.close(CloseExpired) }},
			{want: "t2", end: func(p *peer) { p.close(CloseUnauthorized) }}, // it was accepted before
			{want: "t3", end: func(p *peer) { p.drop() }},
		} {
			p, connect := s.accept()
			if connect.Token != tc.want {
				s.Fatalf("connection %d came with token %s, want %s", i, connect.Token, tc.want)
			}
			synctest.Wait()
			tc.end(p)
		}
	})
}

func TestRefusedNewTokenEndsRun(t *testing.T) {
	forEachTransport(t, tokens, func(s *scenario) {
		p := <-s.peers
		p.expect(wire.TypeConnect)
		p.close(CloseUnauthorized)
		if err := <-s.result; !final(err) {
			s.Fatalf("Run returned %v", err)
		}
	})
}

func TestRefreshedTokenIsKept(t *testing.T) {
	forEachTransport(t, tokens, func(s *scenario) {
		p, _ := s.accept()
		done := make(chan error)
		go func() { done <- s.client.Refresh(s.Context(), "mine") }()
		p.answer(p.expect(wire.TypeRefresh), `{"type":"refreshed"}`)
		if err := <-done; err != nil {
			s.Fatal(err)
		}
		p.drop()
		if _, connect := s.accept(); connect.Token != "mine" {
			s.Fatalf("reconnected with token %s", connect.Token)
		}
	})
}

func TestRefusedConnect(t *testing.T) {
	for code, reason := range map[ErrorCode]CloseReason{
		Unauthorized: CloseUnauthorized, Forbidden: CloseUnauthorized, BadRequest: CloseBadRequest,
		Unavailable: "", RateLimited: "",
	} {
		t.Run(string(code), func(t *testing.T) {
			forEachTransport(t, nil, func(s *scenario) {
				p := <-s.peers
				p.answer(p.expect(wire.TypeConnect), `{"type":"error","code":%q}`, code)
				if reason == "" {
					s.accept()
					return
				}
				err := <-s.result
				if closed, ok := errors.AsType[*ClosedError](err); !ok || closed.Reason != reason {
					s.Fatalf("Run returned %v, want %s", err, reason)
				}
			})
		})
	}
}

func TestFailureMovesToTheNextInstance(t *testing.T) {
	change := func(s *scenario, o *Options) {
		s.down = true
		o.URLs = append(o.URLs, o.URLs[0]+"1", o.URLs[0]+"2")
		if o.URLs[0][:2] == "ws" {
			o.URLs[1], o.URLs[2] = "ws://127.0.0.1:8081/ws", "ws://127.0.0.1:8082"
		}
	}
	forEachTransport(t, change, func(s *scenario) {
		pause(s.Context(), 10*time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		counts := map[string]int{}
		for _, address := range s.dialled {
			counts[address]++
		}
		if first := s.dialled[:3]; first[0] == first[1] || slices.Contains(first[:2], first[2]) {
			s.Errorf("dialled %v first: each URL once", first)
		}
		for address, n := range counts {
			if n < 30 || n > 150 {
				s.Errorf("dialled %s %d times in 10 min", address, n)
			}
		}
		if len(counts) != 3 {
			s.Errorf("dialled %v", counts)
		}
	})
}

func TestOnState(t *testing.T) {
	change := func(s *scenario, o *Options) {
		o.OnState = func(st State) { s.record("%s %s %s final=%t", st.Phase, st.Server, st.User, st.Final) }
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		s.wantCallbacks("[connecting   final=false connected b1 alice final=false]")
		p.close(CloseIdle)
		p, _ = s.accept()
		s.wantCallbacks("[closed   final=false connecting   final=false connected b1 alice final=false]")
		p.sendQueued(1)
		p.expectAck(1)
		s.end()
		if err := <-s.result; err != nil {
			s.Fatal(err)
		}
		s.wantCallbacks("[:1 closed   final=true]")
	})
}
