package session_test

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// types are those of events, with codes where there are any.
func types(events []wire.Event) string {
	var list []string
	for _, e := range events {
		list = append(list, strings.TrimSuffix(e.Type+":"+e.Code, ":"))
	}
	return strings.Join(list, " ")
}

// TestMessagesSentWithConnectKeepTheirOrder although connect waits for the store.
func TestMessagesSentWithConnectKeepTheirOrder(t *testing.T) {
	for sent, want := range map[string]string{
		"ping subscribe":       "connected pong subscribed",
		"ack ping":             "connected error:bad_request pong", // nothing was ever sent to this client
		"ping ping subscribe":  "connected pong subscribed",        // one answer is owed
		"ack subscribe ping":   "connected error:bad_request subscribed pong",
		"subscribe ping":       "connected subscribed pong",
		"pong subscribe bogus": "connected subscribed error:bad_request",
	} {
		d := greeted(t, session.Options{}, plain, nil)
		d.do(func() {
			receive(d.to, []byte(`{"type":"connect","client":"phone"}`))
			for typ := range strings.FieldsSeq(sent) {
				receive(d.to, fmt.Appendf(nil, `{"type":%q,"channel":"news","id":5}`, typ))
			}
		})
		d.settle()
		if got := types(d.hears()); got != want {
			t.Errorf("connect %s is answered with %q, want %q", sent, got, want)
		}
		d.want("")
	}
}

// TestWaitingMessagesAreBoundedByBytes: one may be as long as it likes, and many must be short.
func TestWaitingMessagesAreBoundedByBytes(t *testing.T) {
	message := func(n int) string {
		return fmt.Sprintf(`{"type":"publish","channel":"news","data":%q}`, strings.Repeat("x", n))
	}
	for name, c := range map[string]struct {
		size, fit int
	}{
		"one long":   {200 << 10, 1},
		"two":        {60 << 10, 2},
		"many":       {4 << 10, 31},
		"very short": {1, 64},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, session.Options{Limits: session.Limits{Message: 1 << 20}})
			d.backlog(true) // so that nothing is acted on
			for range c.fit {
				d.say("%s", message(c.size))
			}
			d.want("")
			d.backlog(false)
			d.do(d.to.Writable) // all of it is taken up, and the places are free again
			for answers := 0; answers < c.fit; {
				d.settle()
				for _, e := range d.hears() {
					if e.Type == wire.TypePublished {
						answers++
					}
				}
			}
			d.backlog(true)
			for range c.fit {
				d.say("%s", message(c.size))
			}
			d.want("")
			d.say("%s", message(c.size))
			d.want(wire.CloseOverloaded)
		})
	}
}

// TestSubscribeAgain goes on from where the subscription is: nothing comes twice, and it is one
// place of the channels that are allowed.
func TestSubscribeAgain(t *testing.T) {
	d := newDesk(t, session.Options{Limits: session.Limits{Channels: 1}})
	publish := func() int64 {
		t.Helper()
		d.say(`{"type":"publish","channel":"news","data":1}`)
		for _, e := range d.hears() {
			if e.Type == wire.TypePublished {
				return *e.ID
			}
		}
		t.Fatal("not published")
		return 0
	}
	d.say(`{"type":"subscribe","channel":"news"}`)
	d.hears()
	first := publish()
	d.hub.Channel("news").MarkDirty()
	d.settle()
	if got := types(d.hears()); got != "message" {
		t.Fatalf("got %q", got)
	}
	for _, after := range []string{"", `,"after":0`} {
		d.say(`{"type":"subscribe","channel":"news"%s}`, after)
		e := d.hears()
		if len(e) != 1 || e[0].Type != wire.TypeSubscribed || e[0].ID == nil || *e[0].ID == 0 || e[0].Recovered != nil {
			t.Fatalf("again%s: %+v, want subscribed with the position alone", after, e)
		}
	}
	d.answers("unsubscribed", "", "", `{"type":"unsubscribe","channel":"news"}`)
	d.answers("unsubscribed", "", "", `{"type":"unsubscribe","channel":"news"}`)
	d.say(`{"type":"subscribe","channel":"news","after":0}`)
	if e := d.hears(); types(e) != "subscribed message" || *e[1].ID != first { // a new subscription, which has missed it
		t.Fatalf("%+v", e)
	}
}
