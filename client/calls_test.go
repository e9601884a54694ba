package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/wire"
)

func TestCallsAreAnsweredByRef(t *testing.T) {
	for _, tc := range []struct {
		call                  func(ctx context.Context, c *Client) (any, error)
		request, answer, want string
		accepted              string // sent before the answer, if not empty
	}{
		{request: wire.TypePublish, answer: `{"type":"published","id":7}`, want: "7",
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.Publish(ctx, "news", map[string]int{"n": 1})
			}},
		{request: wire.TypeRequest, accepted: `{"type":"accepted"}`, answer: `{"type":"reply","data":{"ok":1}}`, want: `{"ok":1}`,
			call: func(ctx context.Context, c *Client) (any, error) {
				raw, err := c.Request(ctx, "q")
				return string(raw), err
			}},
		{request: wire.TypeRequest, answer: `{"type":"reply","data":{"ok":1}}`, want: `map[ok:1]`,
			call: func(ctx context.Context, c *Client) (any, error) {
				var into map[string]int
				err := c.Call(ctx, "room.join", "q", &into)
				return into, err
			}},
		{request: wire.TypeHistory, answer: `{"type":"history","messages":[{"id":3,"data":1,"by":"amy/tab"}],"more":true}`, want: "{[{3 [49] amy/tab   0 <nil>}] true 3}",
			call: func(ctx context.Context, c *Client) (any, error) { return c.History(ctx, "news", 2, 1) }},
		{request: wire.TypeSubscribe, answer: `{"type":"subscribed","channel":"news","id":9,"recovered":false}`, want: "{news 9 false}",
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.Subscribe(ctx, "news", SubscribeOptions{After: new(int64(4))})
			}},
		{request: wire.TypeRefresh, answer: `{"type":"refreshed"}`, want: "<nil>",
			call: func(ctx context.Context, c *Client) (any, error) { return nil, c.Refresh(ctx, "t2") }},
		{request: wire.TypePing, answer: `{"type":"pong"}`, want: "<nil>",
			call: func(ctx context.Context, c *Client) (any, error) { return nil, c.Ping(ctx) }},
	} {
		for _, refused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/refused=%t", tc.request, refused), func(t *testing.T) {
				forEachTransport(t, nil, func(s *scenario) {
					p, _ := s.accept()
					var got any
					var err error
					done := make(chan struct{})
					go func() { defer close(done); got, err = tc.call(s.Context(), s.client) }()
					req := p.expect(tc.request)
					p.sendf(`{"type":"error","ref":%d,"code":"timeout"}`, req.Ref.Value+1)
					if tc.accepted != "" {
						p.answer(req, "%s", tc.accepted)
					}
					if refused {
						p.answer(req, `{"type":"error","code":"forbidden","message":"no"}`)
					} else {
						p.answer(req, "%s", tc.answer)
					}
					<-done
					if refusal, ok := errors.AsType[*Error](err); refused && (!ok || refusal.Code != Forbidden) {
						s.Fatalf("error %v, want forbidden", err)
					}
					if !refused && (err != nil || fmt.Sprint(got) != tc.want) {
						s.Fatalf("got %v, %v; want %s", got, err, tc.want)
					}
				})
			})
		}
	}
}

func TestPublishIsNotRepeatedAfterAReconnect(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		done := make(chan error)
		go func() { _, err := s.client.Publish(s.Context(), "news", 1); done <- err }()
		p.expect(wire.TypePublish)
		p.drop()
		if err := <-done; !errors.Is(err, ErrUnknownOutcome) {
			s.Fatalf("error %v, want an unknown outcome", err)
		}
		p, _ = s.accept()
		p.expectNothing()
	})
}

func TestPublishWaitsForAConnection(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		done := make(chan error)
		go func() { _, err := s.client.Publish(s.Context(), "news", 1); done <- err }()
		p, _ := s.accept()
		p.answer(p.expect(wire.TypePublish), `{"type":"published","id":1}`)
		if err := <-done; err != nil {
			s.Fatal(err)
		}
	})
}

func TestRequestStaysPendingOverAReconnect(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		done := make(chan string)
		go func() { raw, err := s.client.Request(s.Context(), 1); done <- fmt.Sprint(string(raw), err) }()
		req := p.expect(wire.TypeRequest)
		p.answer(req, `{"type":"accepted"}`)
		p.drop()
		p, _ = s.accept()
		p.expectNothing()
		p.answer(req, `{"type":"reply","data":42}`)
		if got := <-done; got != "42<nil>" {
			s.Fatal(got)
		}
	})
}

func TestCancelledRequestHasAnUnknownOutcome(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
		defer cancel()
		done := make(chan error)
		go func() { _, err := s.client.Request(ctx, 1); done <- err }()
		p.expect(wire.TypeRequest)
		stop := pingRegularly(p)
		err := <-done
		stop()
		if !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			s.Fatal(err)
		}
	})
}

// pingRegularly sends the heartbeats of an idle broker until stop is called.
func pingRegularly(p *peer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for pause(ctx, 25*time.Second) {
			p.ping()
		}
	}()
	return cancel
}

func TestIdempotentCallsAreRepeated(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		done := make(chan error)
		go func() { _, err := s.client.History(s.Context(), "news", 0, 0); done <- err }()
		first := p.expect(wire.TypeHistory)
		p.drop()
		p, _ = s.accept()
		again := p.expect(wire.TypeHistory)
		if again.Ref != first.Ref {
			s.Fatalf("ref %v became %v", first.Ref, again.Ref)
		}
		p.answer(again, `{"type":"history","messages":[]}`)
		if err := <-done; err != nil {
			s.Fatal(err)
		}
	})
}

func TestCallsEndWithRun(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		done := make(chan error)
		go func() { done <- s.client.Ping(s.Context()) }()
		p.expect(wire.TypePing)
		p.close(CloseSuperseded)
		var closed *ClosedError
		if err := <-done; !errors.Is(err, ErrStopped) || !errors.As(err, &closed) {
			s.Fatalf("pending call: %v", err)
		}
		if err := <-s.result; !errors.As(err, &closed) || closed.Reason != CloseSuperseded {
			s.Fatalf("Run: %v", err)
		}
		if err := s.client.Ping(s.Context()); !errors.Is(err, ErrStopped) {
			s.Fatalf("call after the end of Run: %v", err)
		}
		if err := s.client.Run(s.Context()); err == nil {
			s.Fatal("the second Run returned nil")
		}
	})
}

func TestCallbackMayCallWhileTheInboxIsFull(t *testing.T) {
	big := make([]byte, softLimit/16)
	for i := range big {
		big[i] = '1'
	}
	published := make(chan error, 64)
	change := func(s *scenario, o *Options) {
		o.OnMessage = func(m Message) {
			_, err := s.client.Publish(s.Context(), "out", m.ID)
			published <- err
		}
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		go func() {
			for id := 1; id <= 32; id++ { // twice softLimit
				p.sendf(`{"type":"message","channel":"$all","id":%d,"data":"%s"}`, id, big)
			}
		}()
		for id := range int64(32) {
			req := p.expect(wire.TypePublish)
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				p.sendf(`{"type":"published","id":%d,"ref":%d}`, id, req.Ref.Value)
			}()
			if err := <-published; err != nil {
				s.Fatal(err)
			}
			<-answered
		}
	})
}

func TestReadingStopsWhileTheInboxIsFull(t *testing.T) {
	big := make([]byte, softLimit/16)
	for i := range big {
		big[i] = '1'
	}
	change := func(s *scenario, o *Options) {
		o.OnMessage = func(m Message) {
			s.record("%d", m.ID)
			pause(s.Context(), time.Hour) // much longer than idleTimeout
		}
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		sent := make(chan int, 100)
		go func() {
			for id := 1; id <= 40; id++ {
				p.sendf(`{"type":"message","channel":"$all","id":%d,"data":"%s"}`, id, big)
				sent <- id
			}
		}()
		synctest.Wait()
		if n := len(sent); n < 15 || n > 18 {
			s.Fatalf("%d messages were read with room for 16", n)
		}
		for id := 1; len(sent) < 40; id++ {
			s.wantCallbacks(fmt.Sprintf("[%d]", id))
			if len(s.peers) > 0 {
				s.Fatal("a slow callback ended the connection")
			}
			pause(s.Context(), time.Hour)
		}
	})
}

// TestCall checks what Call sends, its errors, and that it does not repeat a call.
func TestCall(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		call := func() chan error {
			result := make(chan error, 1)
			go func() { result <- s.client.Call(s.Context(), "room.join", map[string]int{"n": 1}, nil) }()
			return result
		}
		result := call()
		req := p.expect(wire.TypeRequest)
		if req.Method != "room.join" || string(req.Data) != `{"n":1}` {
			s.Fatalf("sent %+v", req)
		}
		p.answer(req, `{"type":"error","code":"locked","message":"ask","data":{"host":"bob"}}`)
		err := <-result
		detailed, ok := errors.AsType[*DetailedError](err)
		if own, found := errors.AsType[*Error](err); !ok || !found || own.Code != Locked || string(detailed.Data) != `{"host":"bob"}` {
			s.Errorf("got %v", err)
		}
		result = call()
		p.answer(p.expect(wire.TypeRequest), `{"type":"error","code":"conflict","fields":{"a":null}}`)
		if refusal, ok := errors.AsType[*Refusal](<-result); !ok || len(refusal.Fields) != 1 {
			s.Errorf("got %v", refusal)
		}
		result = call()
		p.expect(wire.TypeRequest)
		p.drop()
		if err := <-result; !errors.Is(err, ErrUnknownOutcome) {
			s.Errorf("without a reply: %v", err)
		}
		p, _ = s.accept()
		p.expectNothing()
		if err := s.client.Call(s.Context(), "Bad", nil, nil); err == nil {
			s.Error("a bad name is sent")
		}
	})
}
