package session_test

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// TestMessagesSentWithConnectKeepTheirOrder has messages come while connect waits for the store.
func TestMessagesSentWithConnectKeepTheirOrder(t *testing.T) {
	for sent, want := range map[string]string{
		"ping subscribe":       "connected pong subscribed",
		"ack ping":             "connected error:bad_request pong", // nothing was ever sent to this client
		"ping ping subscribe":  "connected pong subscribed",        // one pong answers both
		"ack subscribe ping":   "connected error:bad_request subscribed pong",
		"subscribe ping":       "connected subscribed pong",
		"pong subscribe bogus": "connected subscribed error:bad_request",
	} {
		h := newUnconnected(t, session.Options{}, unwrapped, nil)
		h.onLoop(func() {
			receive(h.receiver, `{"type":"connect","client":"phone"}`)
			for typ := range strings.FieldsSeq(sent) {
				receive(h.receiver, `{"type":%q,"channel":"news","id":5}`, typ)
			}
		})
		h.settle()
		if got := types(h.received()); got != want {
			t.Errorf("connect %s is answered with %q, want %q", sent, got, want)
		}
		h.wantClosed("")
	}
}

// TestWaitingMessagesAreBounded checks that one waiting message may have any size, and that many
// must be short.
func TestWaitingMessagesAreBounded(t *testing.T) {
	message := func(n int) string {
		return fmt.Sprintf(`{"type":"publish","channel":"news","data":%q}`, strings.Repeat("x", n))
	}
	for name, c := range map[string]struct {
		size, fit, limit int
	}{
		"one long":   {200 << 10, 1, 0},
		"two":        {60 << 10, 2, 0},
		"many":       {4 << 10, 31, 0},
		"very short": {1, 64, 0},
		"a limit":    {1, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, session.Options{Limits: session.Limits{Message: 1 << 20, Waiting: c.limit}})
			h.setBacklog(true) // so that the messages wait
			for range c.fit {
				h.send("%s", message(c.size))
			}
			h.wantClosed("")
			h.setBacklog(false)
			h.onLoop(h.receiver.Writable) // all waiting messages are handled, and there is room again
			for answers := 0; answers < c.fit; {
				h.settle()
				for _, e := range h.received() {
					if e.Type == wire.TypePublished {
						answers++
					}
				}
			}
			h.setBacklog(true)
			for range c.fit {
				h.send("%s", message(c.size))
			}
			h.wantClosed("")
			h.send("%s", message(c.size))
			h.wantClosed(wire.CloseOverloaded)
		})
	}
}

// TestRepeatedSubscribe checks that a repeated subscribe continues the subscription: no message
// comes twice, and it counts as one channel.
func TestRepeatedSubscribe(t *testing.T) {
	h := newHarness(t, session.Options{Limits: session.Limits{Channels: 1}})
	publish := func() int64 {
		t.Helper()
		h.send(`{"type":"publish","channel":"news","data":1}`)
		for _, e := range h.received() {
			if e.Type == wire.TypePublished {
				return *e.ID
			}
		}
		t.Fatal("not published")
		return 0
	}
	h.send(`{"type":"subscribe","channel":"news"}`)
	h.received()
	first := publish()
	h.hub.Channel("news").MarkDirty()
	h.settle()
	if got := types(h.received()); got != "message" {
		t.Fatalf("got %q", got)
	}
	for _, after := range []string{"", `,"after":0`} {
		h.send(`{"type":"subscribe","channel":"news"%s}`, after)
		e := h.received()
		if len(e) != 1 || e[0].Type != wire.TypeSubscribed || e[0].ID == nil || *e[0].ID == 0 || e[0].Recovered != nil {
			t.Fatalf("again%s: %+v, want subscribed with the position alone", after, e)
		}
	}
	h.expect("unsubscribed", "", "", `{"type":"unsubscribe","channel":"news"}`)
	h.expect("unsubscribed", "", "", `{"type":"unsubscribe","channel":"news"}`)
	h.send(`{"type":"subscribe","channel":"news","after":0}`)
	if e := h.received(); types(e) != "subscribed message" || *e[1].ID != first { // a new subscription, which has not received it
		t.Fatalf("%+v", e)
	}
}
