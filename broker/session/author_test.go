package session_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// connectUser connects a device whose token names the user and its grants, see verifying.
func (h *harness) connectUser(client, token string) *device {
	h.t.Helper()
	d := &device{h: h, client: client, sock: newSocket()}
	request := wire.Request{Type: wire.TypeConnect, Client: client, Token: token}
	h.onLoop(func() { d.receiver = h.Accept(h.loop, d.sock, []wire.Request{request}) })
	h.settle()
	if events := d.received(); types(events) != "connected" {
		h.t.Fatalf("%s is not connected: %+v", client, events)
	}
	return d
}

// author returns the author of the only message that the device has received since the last call.
func (d *device) author() string {
	d.h.t.Helper()
	events := d.received()
	if types(events) != "message" {
		d.h.t.Fatalf("%s has received %+v, want a message", d.client, events)
	}
	return authorOf(events[0].StateEvent)
}

// authorOf returns the author in a message, and the text "changes" if it has more than the author.
func authorOf(s *wire.StateEvent) string {
	switch {
	case s == nil:
		return ""
	case len(s.Set) > 0:
		return "changes"
	}
	return s.By
}

// authors returns the authors in the history of a channel.
func (d *device) authors(channel string) string {
	d.h.t.Helper()
	events := d.expect("history", `{"type":"history","channel":%q}`, channel)
	var list []string
	for _, m := range *events[0].Messages {
		list = append(list, string(m.Data)+"="+m.By)
	}
	return strings.Join(list, " ")
}

// newAuthors returns a harness with users, who all may do everything but see the presence of
// quiet:* and alias:*. The latter shows aliases, which have a rule of their own.
func newAuthors(t *testing.T) (h *harness, rules *atomic.Pointer[namespace.Set]) {
	users := func(name string, presence namespace.Access) namespace.Rule {
		return namespace.Rule{
			Name: name, Subscribe: namespace.Users, Publish: namespace.Users, Presence: presence, History: namespace.Users,
			State: namespace.Grant, Fields: []namespace.FieldRule{{Pattern: "*", Write: namespace.Users}},
		}
	}
	alias := users("alias:*", namespace.BackendOnly)
	alias.By = "name/{user}"
	rules = new(atomic.Pointer[namespace.Set])
	rules.Store(ruled(t, users("chat:*", namespace.Users), users("quiet:*", namespace.Grant), alias)())
	h = newUnconnected(t, session.Options{Access: session.Access{Verify: verifying(t), Namespaces: rules.Load}}, unwrapped, connect("phone", "amy"))
	h.hints = true
	h.received()
	return h, rules
}

// TestAuthor checks which subscribers see the author of a message, live and in histories: those
// that may see the presence of the channel.
func TestAuthor(t *testing.T) {
	h, _ := newAuthors(t)
	bob, cat := h.connectUser("tab", "bob"), h.connectUser("tab", "cat|quiet:1=presence")
	for _, channel := range []string{"chat:1", "quiet:1"} {
		for _, d := range []*device{bob, cat} {
			d.expect("subscribed", `{"type":"subscribe","channel":%q}`, channel)
		}
		h.expect("published", "", "", `{"type":"publish","channel":%q,"data":{"by":"cat","from":"cat/tab"},"by":"cat/tab"}`, channel)
		want := "amy/phone"
		if got := cat.author(); got != want {
			t.Errorf("%s: cat sees the author %q, want %q", channel, got, want)
		}
		if got, want := cat.authors(channel), `{"by":"cat","from":"cat/tab"}=amy/phone`; got != want {
			t.Errorf("%s: cat's history is %s, want %s", channel, got, want)
		}
		if channel == "quiet:1" {
			want = ""
		}
		if got := bob.author(); got != want {
			t.Errorf("%s: bob sees the author %q, want %q", channel, got, want)
		}
		if got, want := bob.authors(channel), `{"by":"cat","from":"cat/tab"}=`+want; got != want {
			t.Errorf("%s: bob's history is %s, want %s", channel, got, want)
		}
	}
}

// TestAuthorOfBackend checks that a message of the backend has no author.
func TestAuthorOfBackend(t *testing.T) {
	h, _ := newAuthors(t)
	bob := h.connectUser("tab", "bob")
	bob.expect("subscribed", `{"type":"subscribe","channel":"chat:1"}`)
	a, err := h.queue.AppendChannel(t.Context(), queue.ChannelPush{Channel: "chat:1", Data: []byte(`{"by":"amy/phone"}`)})
	if err != nil {
		t.Fatal(err)
	}
	h.hub.Channel("chat:1").Hint(a.ID, a.Prev, a.Data)
	h.settle()
	if got := bob.author(); got != "" {
		t.Errorf("the author is %q, want none", got)
	}
}

// TestAuthorAfterNewRights checks that new rules and a new token change what a subscription shows,
// also while it sees the state.
func TestAuthorAfterNewRights(t *testing.T) {
	h, rules := newAuthors(t)
	bob := h.connectUser("tab", "bob")
	bob.expect("subscribed", `{"type":"subscribe","channel":"quiet:1"}`)
	want := func(what, author string) {
		t.Helper()
		h.expect("published", "", "", `{"type":"publish","channel":"quiet:1","data":1}`)
		if got := bob.author(); got != author {
			t.Errorf("%s: bob sees the author %q, want %q", what, got, author)
		}
	}
	want("at first", "")
	bob.expect("refreshed", `{"type":"refresh","token":"bob|quiet:1=presence state"}`)
	want("with the right", "amy/phone")
	bob.expect("subscribed state", `{"type":"subscribe","channel":"quiet:1","state":true}`)
	want("with the state", "amy/phone")
	bob.expect("refreshed", `{"type":"refresh","token":"bob|quiet:1=state"}`)
	want("without the right", "")
	open := namespace.Rule{Name: "quiet:*", Subscribe: namespace.Users, Publish: namespace.Users, Presence: namespace.Users, State: namespace.Users}
	rules.Store(ruled(t, open)())
	h.onLoop(func() {})
	h.Recheck()
	h.settle()
	want("with new rules", "amy/phone")
}

// TestAuthorAlias checks that a channel that shows aliases never shows the id of a client: readers
// of the state see the alias, others nothing.
func TestAuthorAlias(t *testing.T) {
	h, _ := newAuthors(t)
	bob, cat := h.connectUser("tab", "bob"), h.connectUser("tab", "cat|alias:1=state")
	for _, d := range []*device{bob, cat} {
		d.expect("subscribed", `{"type":"subscribe","channel":"alias:1"}`)
	}
	want := func(what, author string) {
		t.Helper()
		h.expect("published", "", "", `{"type":"publish","channel":"alias:1","data":1}`)
		if got := cat.author(); got != author {
			t.Errorf("%s: the author is %q, want %q", what, got, author)
		}
		if got := bob.author(); got != "" {
			t.Errorf("%s: a client without a right sees the author %q", what, got)
		}
	}
	want("without an alias", "")
	h.backendSet("alias:1", map[string]string{"name/amy": `"Amy"`})
	want("with an alias", "Amy")
	h.backendSet("alias:1", map[string]string{"name/amy": `{"a":1}`})
	want("with a field that is no text", "")
	h.backendSet("alias:1", map[string]string{"name/amy": `"` + strings.Repeat("x", state.MaxAlias) + `"`})
	want("with the longest alias", strings.Repeat("x", state.MaxAlias))
	h.backendSet("alias:1", map[string]string{"name/amy": `"` + strings.Repeat("x", state.MaxAlias+1) + `"`})
	want("with a longer one", "")
	if got := cat.authors("alias:1"); strings.Contains(got, "amy") || !strings.HasPrefix(got, "1= 1=Amy 1= 1=xxx") {
		t.Errorf("the history is %s", got)
	}
}

// TestNoEcho checks that a client that publishes without an echo does not receive its message, live
// and when it resumes, and that others and histories do. It receives its changes of fields.
func TestNoEcho(t *testing.T) {
	h, _ := newAuthors(t)
	bob, desk, tab := h.connectUser("tab", "bob|chat:1=state"), h.connectUser("desk", "amy"), h.connectUser("tab", "amy|chat:1=state")
	for _, d := range []*device{bob, tab} {
		d.expect("subscribed state", `{"type":"subscribe","channel":"chat:1","state":true}`)
	}
	desk.expect("subscribed", `{"type":"subscribe","channel":"chat:1"}`)
	first := desk.expect("message published", `{"type":"publish","channel":"chat:1","data":1,"echo":true}`)[0]
	desk.expect("published", `{"type":"publish","channel":"chat:1","data":2,"echo":false}`)
	desk.expect("published", `{"type":"publish","channel":"chat:1","data":3,"set":{"x":1},"echo":false}`)
	for _, d := range []*device{bob, tab} { // tab is another client of the user
		events := d.received()
		if types(events) != "message message message" || string(events[2].Data) != "3" || string(events[2].Set["x"]) != "1" {
			t.Errorf("%s receives %+v", d.client, events)
		}
	}
	events := tab.expect("message published", `{"type":"publish","channel":"chat:1","data":4,"set":{"x":2},"echo":false}`)
	if m := events[0]; m.Data != nil || string(m.Set["x"]) != "2" || m.By != "amy/tab" {
		t.Errorf("its changes are %+v", m)
	}
	if events := desk.received(); types(events) != "message" || string(events[0].Data) != "4" {
		t.Errorf("another client of the user receives %+v", events)
	}
	if got, want := desk.authors("chat:1"), "1=amy/desk 2=amy/desk 3=amy/desk 4=amy/tab"; got != want {
		t.Errorf("the history is %s, want %s", got, want)
	}
	desk.expect("unsubscribed", `{"type":"unsubscribe","channel":"chat:1"}`)
	events = desk.expect("subscribed message", `{"type":"subscribe","channel":"chat:1","after":%d}`, *first.ID)
	if string(events[1].Data) != "4" {
		t.Errorf("a resuming client receives %+v", events)
	}
	desk.expect("error:bad_request", `{"type":"publish","channel":"chat:1","data":1,"echo":"no"}`)
}
