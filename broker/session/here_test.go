package session_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/loop"
	"switchboard/broker/namespace"
	"switchboard/broker/peer"
	"switchboard/broker/presence"
	"switchboard/broker/session"
	"switchboard/broker/work"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// newPresence returns a presence with a store of its own, in which this server has the channels.
func newPresence(t *testing.T, channels ...string) *presence.Presence {
	store := registry.NewMemory(registry.Options{})
	for _, channel := range channels {
		if err := store.BindChannel(t.Context(), "me", channel); err != nil {
			t.Fatal(err)
		}
	}
	return newPresenceOn(store)
}

// newPresenceOn returns a presence with the given store.
func newPresenceOn(store *registry.Memory) *presence.Presence {
	p := presence.New(presence.Options{
		Store: leased{store}, Pool: work.NewOn(8, func(worker func()) { go worker() }), Loops: []*loop.Loop{loop.New(0)},
		Messages: spoken.New(ping), ServerID: func() string { return "me" }, HoldsLease: func() bool { return true },
		Notify: func(string, peer.Hint) {}, Hold: func(string) func() { return func() {} },
		Members: func(string) []registry.Member { return nil }, ChannelLimits: presence.ChannelLimits{LargeChannel: 2},
	})
	p.SetLive(map[string]bool{"me": true})
	return p
}

// leased is a store in which every server has a lease.
type leased struct{ *registry.Memory }

func (leased) Lease(ctx context.Context, server string) (registry.Server, bool, error) {
	return registry.Server{}, true, nil
}

// valueOf returns the value that a page shows of the only member of a channel, "" for none.
func valueOf(t *testing.T, p *presence.Presence, channel string) string {
	t.Helper()
	<-time.After(100 * time.Millisecond) // the pauses between the writes of rosters and the sends of values
	synctest.Wait()
	page, err := p.Page(t.Context(), channel, "", 10, 0)
	if err != nil || len(page.Members) != 1 {
		t.Fatalf("the members of %s are %v: %v", channel, page.Members, err)
	}
	return string(page.WireMembers()[0].Here)
}

// TestHere checks that a value is shown until it ends, and that only errors are answered.
func TestHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPresence(t, "news")
		h := newHarness(t, session.Options{Presence: p})
		show := func(data, want string) {
			t.Helper()
			h.send(`{"type":"here","channel":"news","ref":3,"data":%s}`, data)
			if events := h.received(); len(events) > 0 {
				t.Errorf("%s is answered with %+v", data, events)
			}
			if got := valueOf(t, p, "news"); got != want {
				t.Errorf("after %s the value is %s, want %s", data, got, want)
			}
		}
		h.expect("subscribed", "", "", `{"type":"subscribe","channel":"news"}`)
		show(`{"x": 4, "y": [9]}`, `{"x":4,"y":[9]}`)
		show(`false`, `false`)
		show(` null `, ``)
		show(`null`, ``)
		longest := `"` + strings.Repeat("x", presence.MaxHere-2) + `"`
		show(longest, longest)
		for _, c := range []struct{ code, text, message string }{
			{"bad_request", "data: missing", `{"type":"here","channel":"news","ref":3}`},
			{"too_large", "at most 1024", `{"type":"here","channel":"news","ref":3,"data":"x` + longest[1:] + `}`},
			{"bad_request", "the name is empty", `{"type":"here","ref":3,"data":1}`},
			{"forbidden", "system channel", `{"type":"here","channel":"$all","ref":3,"data":1}`},
			{"forbidden", "channel other: not subscribed", `{"type":"here","channel":"other","ref":3,"data":1}`},
		} {
			if e := h.expect("error", c.code, c.text, "%s", c.message); e.Ref != wire.RefOf(3) {
				t.Errorf("the error has the ref %v", e.Ref)
			}
		}
		if got := valueOf(t, p, "news"); got != longest {
			t.Errorf("after refused values it is %s", got)
		}
		h.send(`{"type":"unsubscribe","channel":"news"}`)
		h.send(`{"type":"subscribe","channel":"news"}`)
		if got := valueOf(t, p, "news"); got != "" {
			t.Errorf("after unsubscribe the value is %s", got)
		}
	})
}

// TestHereLarge checks that a value in a large channel is refused.
func TestHereLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPresence(t, "news")
		h := newHarness(t, session.Options{Presence: p})
		for _, client := range []string{"a", "b", "c"} {
			p.Join("news", registry.Member{Client: client, Generation: 1})
		}
		h.expect("subscribed", "", "", `{"type":"subscribe","channel":"news"}`)
		<-time.After(time.Second)
		for range 2 { // the second one without a call to the store
			h.expect("error", "rate_limited", "more than 2 clients", `{"type":"here","channel":"news","data":1}`)
		}
	})
}

// TestHereRights checks that showing a value needs the right to see the presence, and that the
// value ends with that right.
func TestHereRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set atomic.Pointer[namespace.Set]
		seen := namespace.Rule{Name: "seen", Subscribe: namespace.Anyone, Presence: namespace.Anyone}
		set.Store(ruled(t, seen,
			namespace.Rule{Name: "hidden", Subscribe: namespace.Anyone},
			namespace.Rule{Name: "off", Subscribe: namespace.Anyone, NoPresence: true})())
		p := newPresence(t, "seen")
		o, refused := countRefusals(session.Options{Presence: p, Access: session.Access{Namespaces: set.Load}})
		h := newHarness(t, o)
		for _, channel := range []string{"seen", "hidden", "off"} {
			h.expect("subscribed", "", "", `{"type":"subscribe","channel":%q}`, channel)
		}
		h.expect("error", "forbidden", "not allowed to see who is there", `{"type":"here","channel":"hidden","data":1}`)
		h.expect("error", "forbidden", "channel off", `{"type":"here","channel":"off","data":1}`)
		if refused["presence"] != 2 {
			t.Errorf("counted %v", refused)
		}
		h.send(`{"type":"here","channel":"seen","data":1}`)
		if got := valueOf(t, p, "seen"); got != "1" {
			t.Errorf("the value is %q", got)
		}
		seen.Presence = 0
		set.Store(ruled(t, seen)())
		h.Recheck()
		if got := valueOf(t, p, "seen"); got != "" {
			t.Errorf("without the right the value is %q", got)
		}
		without := newHarness(t, session.Options{})
		without.expect("subscribed", "", "", `{"type":"subscribe","channel":"seen"}`)
		without.expect("error", "forbidden", "it has no presence", `{"type":"here","channel":"seen","data":1}`)
	})
}

// TestHereRate checks that a value takes as much of the message rate as a ping.
func TestHereRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := func(message string) int {
			h := newHarness(t, session.Options{Presence: newPresence(t, "news"), Limits: session.Limits{MessageRate: 4}})
			h.expect("subscribed", "", "", `{"type":"subscribe","channel":"news"}`)
			for range 20 {
				h.send("%s", message)
			}
			return strings.Count(types(h.received()), "rate_limited")
		}
		values, pings := refusals(`{"type":"here","channel":"news","data":1}`), refusals(`{"type":"ping"}`)
		if values != pings || pings == 0 {
			t.Errorf("of 20 values %d are refused, and of 20 pings %d", values, pings)
		}
	})
}
