package client

import (
	"bytes"
	"context"
	"testing"
	"time"

	"switchboard/internal/wire"
)

// FuzzReceive feeds arbitrary messages to a client with pending calls.
func FuzzReceive(f *testing.F) {
	for _, seed := range []string{
		`{"type":"connected","client":"c","ping":25,"id":3}`,
		"{\"type\":\"connected\"}\n{\"type\":\"message\",\"id\":1,\"data\":{}}\n{\"type\":\"gap\",\"id\":0}\n{\"type\":\"message\",\"channel\":\"news\",\"id\":-1}",
		"{\"type\":\"connected\"}\n{\"type\":\"subscribed\",\"ref\":1,\"recovered\":false}\n{\"type\":\"gap\",\"channel\":\"news\"}",
		"{\"type\":\"connected\"}\n{\"type\":\"error\",\"ref\":1,\"code\":\"forbidden\"}\n{\"type\":\"reply\",\"ref\":3}\n{\"type\":\"published\",\"ref\":2}",
		"{\"type\":\"connected\",\"ping\":-9}\n{\"type\":\"history\",\"ref\":4,\"messages\":null}\n{\"type\":\"ping\",\"ref\":null}",
		"{\"type\":\"connected\"}\n{\"type\":\"subscribed\",\"ref\":1,\"channel\":\"news\",\"id\":5}\n" +
			"{\"type\":\"state\",\"channel\":\"news\",\"id\":6,\"first\":true,\"fields\":{\"a\":[1,2,3,\"away\"],\"b\":null},\"more\":true}\n" +
			"{\"type\":\"message\",\"channel\":\"news\",\"id\":7,\"set\":{\"a\":1},\"away\":{\"a\":0}}\n{\"type\":\"state\",\"channel\":\"news\",\"id\":6}",
		"{\"type\":\"connected\"}\n{\"type\":\"error\",\"ref\":2,\"code\":\"full\",\"fields\":{\"a\":[]},\"max\":-1}\n{\"type\":\"here\",\"channel\":\"news\"}",
		`{"type":"closing","code":"draining","after_ms":-1}`,
		`{"type":"error","code":1}`, `[]`, ``, `{"type":"message","id":1e99}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		c, err := New(Options{URLs: []string{"tcp://h:1"}, OnMessage: func(Message) {}, OnFields: func(Snapshot) {}, OnGap: func(Gap) {}})
		if err != nil {
			t.Fatal(err)
		}
		c.nextRef = 0
		c.mu.Lock()
		c.addSubscriptionLocked("news", SubscribeOptions{State: true, Presence: true}, new(int64(5)))
		for _, typ := range []string{wire.TypePublish, wire.TypeRequest, wire.TypeHistory, wire.TypeState, wire.TypeUnsubscribe} {
			c.submitLocked(wire.Request{Type: typ})
		}
		c.mu.Unlock()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(nil) // no retry of a subscribe
		s := &session{client: c, wake: make(chan struct{}, 1), cancel: cancel, idleTimer: time.NewTimer(time.Hour)}
		for line := range bytes.Lines(stream) {
			if s.receive(ctx, line) != nil {
				break
			}
			s.takeRequests()
		}
		s.wg.Wait()
		c.detach(s)
		c.inbox.close()
		c.deliver(t.Context())
		c.failCalls(nil)
		if len(c.calls) > 0 {
			t.Fatalf("%d calls were left pending", len(c.calls))
		}
	})
}
