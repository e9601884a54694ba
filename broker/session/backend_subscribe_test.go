package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// claiming verifies tokens like "alice|news,inbox", which subscribe the client to the channels.
func claiming(token string) (session.Identity, error) {
	user, list, _ := strings.Cut(token, "|")
	id := session.Identity{User: user}
	if list != "" {
		id.Subscribe = strings.Split(list, ",")
	}
	return id, nil
}

// closedToUsers are rules by which no client may subscribe by itself.
func closedToUsers(t *testing.T) session.Access {
	return session.Access{Verify: claiming, Namespaces: ruled(t, namespace.Rule{Name: "*", Subscribe: namespace.Grant})}
}

// summary lists events as "type channel code".
func summary(events []wire.Event) string {
	var list []string
	for _, e := range events {
		list = append(list, strings.TrimSpace(fmt.Sprint(e.Type, " ", e.Channel, " ", e.Code)))
	}
	return strings.Join(list, ", ")
}

// wantEvents checks the events that were written since the last call.
func (h *harness) wantEvents(want string) {
	h.t.Helper()
	if got := summary(h.received()); got != want {
		h.t.Errorf("got %s\nwant %s", got, want)
	}
}

// append stores a message in a channel and returns its id.
func (h *harness) append(channel, data string) int64 {
	h.t.Helper()
	a, err := h.queue.AppendChannel(h.t.Context(), queue.ChannelPush{Channel: channel, Data: []byte(data)})
	if err != nil {
		h.t.Fatal(err)
	}
	h.hint(channel, a)
	h.settle()
	return a.ID
}

// TestTokenSubscribes has a token that subscribes the client to channels that it may not subscribe
// to by itself.
func TestTokenSubscribes(t *testing.T) {
	h := newUnconnected(t, session.Options{Access: closedToUsers(t)}, unwrapped, connect("phone", "alice|a,b"))
	h.hints = true
	events := h.received()
	if got := summary(events); got != "connected, subscribed a, subscribed b" {
		t.Fatalf("got %s", got)
	}
	for _, e := range events[1:] {
		if e.Ref.Set || e.ID == nil || e.Recovered != nil {
			t.Errorf("got %+v", e)
		}
	}
	h.append("b", "1")
	h.wantEvents("message b")
	h.expect("error", "forbidden", "not allowed to subscribe", `{"type":"subscribe","channel":"c"}`)

	// The client may leave. A renewed token does not subscribe it again, but to what is new.
	h.expect("unsubscribed", "", "", `{"type":"unsubscribe","ref":1,"channel":"b"}`)
	h.send(`{"type":"refresh","token":"alice|a,b,c"}`)
	h.wantEvents("refreshed, subscribed c")
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"b"}`)

	// A renewed token ends what it does not name any more.
	h.send(`{"type":"refresh","token":"alice|c"}`)
	h.wantEvents("refreshed, unsubscribed a forbidden, unsubscribed b forbidden")
	h.send(`{"type":"refresh","token":"alice|"}`)
	h.wantEvents("refreshed, unsubscribed c forbidden")
}

// TestTokenSubscriptionResumes has a client that reconnects with its position. It subscribes by
// itself with connect, or after the token has subscribed it.
func TestTokenSubscriptionResumes(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late=", late), func(t *testing.T) {
			h := newUnconnected(t, session.Options{Access: closedToUsers(t)}, unwrapped, nil)
			h.hints = true
			first := h.append("a", "1")
			h.append("a", "2")
			subscribe := fmt.Sprintf(`{"type":"subscribe","ref":7,"channel":"a","after":%d}`, first)
			h.onLoop(func() {
				receive(h.receiver, `{"type":"connect","client":"phone","token":"alice|a"}`)
				if !late {
					receive(h.receiver, "%s", subscribe)
				}
			})
			h.settle()
			want := "connected, subscribed a, message a"
			if late {
				h.wantEvents("connected, subscribed a")
				h.send("%s", subscribe)
				want = "subscribed a, message a"
			}
			events := h.received()
			if got := summary(events); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			if e := events[len(events)-2]; e.Ref.Value != 7 || e.Recovered == nil || !*e.Recovered {
				t.Errorf("got %+v", e)
			}
			h.append("a", "3")
			h.wantEvents("message a")
			h.expect("subscribed", "", "", "%s", subscribe) // repeated: the position is ignored
			h.wantEvents("")
		})
	}
}

// TestTokenSubscriptionRefused has channels that a token cannot open: it is closed, one is above
// the limit, and one has an authorizer that refuses.
func TestTokenSubscriptionRefused(t *testing.T) {
	o := session.Options{
		Access: session.Access{Verify: claiming, Namespaces: ruled(t, namespace.Rule{Name: "a:*", Subscribe: namespace.Grant})},
		Limits: session.Limits{Channels: 2},
		Authorizer: func(channel string) session.Authorizer {
			if channel != "a:kit" {
				return nil
			}
			return refuseKit
		},
	}
	h := newUnconnected(t, o, unwrapped, connect("phone", "alice|b,a:kit,a:1,a:2,a:3"))
	h.wantEvents("connected, unsubscribed b forbidden, unsubscribed a:kit not_found, subscribed a:1, subscribed a:2, unsubscribed a:3 rate_limited")
}

func refuseKit(context.Context, string, string, string) error {
	return wire.Errorf(wire.NotFound, "there is no such room")
}
