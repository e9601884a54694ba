package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/session"
	"switchboard/queue"
	"switchboard/registry"
)

// TestReadsAreCharged checks for each kind of message that each KiB that it makes the store read
// counts as a message.
func TestReadsAreCharged(t *testing.T) {
	const rate = 5 // messages a second, with a burst of 20
	var h *harness
	read := func(ctx context.Context, _ session.Caller, _ json.RawMessage) (any, error) {
		o := h.queue.ReadStates(ctx, []queue.StateRead{{Channel: "large"}})[0]
		return nil, o.Err
	}
	for name, c := range map[string]struct {
		messages []string
		free     bool
	}{
		"a method":               {messages: []string{`{"type":"request","ref":1,"method":"read"}`}},
		"a history":              {messages: []string{`{"type":"history","channel":"long"}`, `{"type":"history","channel":"long"}`}},
		"a history of nothing":   {messages: []string{`{"type":"history","channel":"large"}`}},
		"a page of a state":      {messages: []string{`{"type":"state","ref":1,"channel":"large"}`, `{"type":"state","ref":1,"channel":"large"}`}},
		"a state with a prefix":  {messages: []string{`{"type":"subscribe","channel":"large","state":"none/"}`}},
		"a page of a presence":   {messages: []string{`{"type":"presence","channel":"watched"}`}},
		"a watched presence":     {messages: []string{`{"type":"subscribe","channel":"watched","presence":true}`}},
		"messages that are sent": {messages: []string{`{"type":"subscribe","channel":"long","after":1}`}},
		"messages in vain":       {messages: []string{`{"type":"subscribe","channel":"long","after":1}`, `{"type":"unsubscribe","channel":"long"}`}},
		"a publish":              {messages: []string{`{"type":"publish","channel":"a","data":1}`}, free: true},
		"a change":               {messages: []string{`{"type":"publish","channel":"large","set":{"x":1}}`}, free: true},
		"a subscribe":            {messages: []string{`{"type":"subscribe","channel":"long"}`}, free: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := registry.NewMemory(registry.Options{})
				h = newStateHarness(t, session.Options{
					Presence: newPresenceOn(store), Limits: session.Limits{MessageRate: rate}, Requests: session.Requests{Queues: 1},
					Methods: map[string]session.Method{"read": read},
				})
				h.fill(store)
				h.tick(1)
				for _, message := range c.messages {
					h.onLoop(func() { receive(h.receiver, "%s", message) })
				}
				h.settle()
				h.received()
				refused := 0
				for range rate { // far fewer than the burst
					h.send(`{"type":"ping"}`)
					for _, e := range h.received() { // messages of the channel, too
						if e.Code == "rate_limited" {
							refused++
						}
					}
				}
				if free := refused == 0; free != c.free {
					t.Errorf("%d of %d messages were refused after it", refused, rate)
				}
				<-time.After(time.Minute)
				h.send(`{"type":"ping"}`)
				if got := types(h.received()); !strings.Contains(got, "pong") {
					t.Errorf("received %s a minute later", got)
				}
			})
		})
	}
}

// fill stores much in the channels large (a state), long (messages) and watched (members).
func (h *harness) fill(store *registry.Memory) {
	h.t.Helper()
	text := `"` + strings.Repeat("x", 8<<10) + `"`
	for i := range 8 {
		h.backendSet("large", map[string]string{fmt.Sprint("f", i): text})
	}
	for range 100 {
		if _, err := h.queue.AppendChannel(h.t.Context(), queue.ChannelPush{Channel: "long", Data: []byte(text)}); err != nil {
			h.t.Fatal(err)
		}
	}
	change := registry.PresenceChange{}
	for i := range 100 {
		change.Join = append(change.Join, registry.Member{Client: fmt.Sprint("c", i), Info: json.RawMessage(`{"x":"` + strings.Repeat("x", 800) + `"}`)})
	}
	err := store.BindChannel(h.t.Context(), "me", "watched")
	if err == nil {
		err = store.ChangePresence(h.t.Context(), "me", []registry.RosterChange{{Channel: "watched", PresenceChange: change}})[0].Err
	}
	if err != nil {
		h.t.Fatal(err)
	}
}
