package session_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/session"
	"switchboard/broker/transport"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// sender connects one more client of a user, or one without a user, from an address. subscribe is a
// channel to which it subscribes in the same write, "" for none. The function that it returns sends
// a message and returns the code of the answer.
func (h *harness) sender(user, addr, subscribe string) (sock *socket, ask func(format string, args ...any) string) {
	h.t.Helper()
	sock = newSocket()
	sock.addr = addr
	request := []wire.Request{{Type: wire.TypeConnect, User: user}}
	if subscribe != "" {
		request = append(request, wire.Request{Type: wire.TypeSubscribe, Channel: subscribe})
	}
	var receive func(format string, args ...any)
	h.onLoop(func() { receive = receiveOn(h.Accept(h.loop, sock, request)) })
	h.settle()
	return sock, func(format string, args ...any) string {
		h.t.Helper()
		h.onLoop(func() { sock.written = nil; receive(format, args...) })
		h.settle()
		var events []wire.Event
		h.onLoop(func() { events = sock.written })
		if len(events) != 1 {
			h.t.Fatalf("%s: answered with %+v", fmt.Sprintf(format, args...), events)
		}
		if e := events[0]; e.Code == "rate_limited" && (e.AfterMS < 1 || !wire.ErrorOf(e).Retryable()) {
			h.t.Errorf("after_ms %d, retry %v: a rate clears by waiting", e.AfterMS, e.Retry)
		}
		return events[0].Code
	}
}

func receiveOn(r transport.Receiver) func(format string, args ...any) {
	return func(format string, args ...any) { receive(r, format, args...) }
}

const (
	publishTo    = `{"type":"publish","channel":%q,"data":1}`
	publishBytes = `{"type":"publish","channel":"news","data":%q}`
	setField     = `{"type":"publish","channel":"news","set":{"f":%q}}`
	testChannels = 4
)

// TestSenderOfNewChannels checks which connections share the rate of new channels, and that a
// reconnect does not refill it.
func TestSenderOfNewChannels(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for name, c := range map[string]struct {
		user, addr         string
		nextUser, nextAddr string
		shared             bool
	}{
		"a user":                     {"amy", "192.0.2.1:1", "amy", "198.51.100.9:2", true},
		"two users at an address":    {"amy", "192.0.2.1:1", "bob", "192.0.2.1:2", false},
		"an address":                 {"", "192.0.2.1:1", "", "192.0.2.1:2", true},
		"a /64":                      {"", "[2001:db8::1]:1", "", "[2001:db8::2]:1", true},
		"two addresses":              {"", "192.0.2.1:1", "", "192.0.2.2:1", false},
		"two connections of a proxy": {"", "10.0.0.1:1", "", "10.0.0.1:2", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, refused := countRefusals(session.Options{Limits: session.Limits{NewChannels: 1, Channels: testChannels, Proxies: proxies}})
				h := newUnconnected(t, o, unwrapped, nil)
				_, ask := h.sender(c.user, c.addr, "")
				for i := range testChannels {
					if code := ask(publishTo, fmt.Sprint("a-", i)); code != "" {
						t.Fatalf("channel %d: %s", i, code)
					}
				}
				_, next := h.sender(c.nextUser, c.nextAddr, "")
				want := map[bool]string{true: "rate_limited"}[c.shared]
				for _, format := range []string{publishTo, `{"type":"subscribe","channel":%q}`} {
					if code := next(format, "b-"+format[9:12]); code != want {
						t.Errorf("%s of the next connection: %q, want %q", format, code, want)
					}
				}
				if code := next(publishTo, "a-0"); code != "" {
					t.Errorf("a publish to an existing channel: %s", code)
				}
				if (refused["new_channels"] == 2) != c.shared {
					t.Errorf("counted %v", refused)
				}
			})
		})
	}
}

// TestSubscribeCountsTheNewChannel checks that a channel counts once for a client that subscribes
// to it and then publishes the first message, or sets the first field.
func TestSubscribeCountsTheNewChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newUnconnected(t, session.Options{Limits: session.Limits{NewChannels: 1, Channels: testChannels}}, unwrapped, nil)
		_, ask := h.sender("amy", "192.0.2.1:1", "")
		for i := range testChannels {
			if code := ask(`{"type":"subscribe","channel":%q}`, fmt.Sprint("a-", i)); code != "" {
				t.Fatalf("subscribe %d: %s", i, code)
			}
		}
		if code := ask(publishTo, "b"); code != "rate_limited" {
			t.Errorf("a publish to another channel: %q", code)
		}
		for i := range testChannels {
			format := []string{publishTo, `{"type":"publish","channel":%q,"set":{"f":1}}`}[i%2]
			if code := ask(format, fmt.Sprint("a-", i)); code != "" {
				t.Errorf("the first publish to channel %d: %s", i, code)
			}
		}
	})
}

// TestNewChannelsByReconnecting checks that a client which connects and subscribes in one write,
// again and again, gets no more channels than one that stays.
func TestNewChannelsByReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newUnconnected(t, session.Options{Limits: session.Limits{NewChannels: 1, Channels: testChannels}}, unwrapped, nil)
		subscribed := 0
		for i := range 3 * testChannels {
			sock, _ := h.sender("", fmt.Sprintf("192.0.2.7:%d", 1+i), fmt.Sprint("c-", i))
			h.onLoop(func() { subscribed += strings.Count(types(sock.written), wire.TypeSubscribed) })
		}
		if subscribed != testChannels {
			t.Errorf("%d channels, want %d", subscribed, testChannels)
		}
	})
}

// TestUserStored checks what counts towards the bytes that a user may store, and who shares them.
func TestUserStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget, each = 36_000, 6_000 - 2 // with the quotes
		o, refused := countRefusals(session.Options{Limits: session.Limits{UserStored: budget}})
		h := newUnconnected(t, o, unwrapped, nil)
		data := strings.Repeat("x", each)
		_, ask := h.sender("amy", "192.0.2.1:1", "")
		for range 20 { // the condition does not hold: nothing is stored
			if code := ask(`{"type":"publish","channel":"news","set":{"f":%q},"if":{"f":1}}`, data); code != "conflict" {
				t.Fatalf("a condition: %q", code)
			}
		}
		for i := range 5 {
			if code := ask(publishBytes, data); code != "" {
				t.Fatalf("message %d: %s", i, code)
			}
		}
		if code := ask(setField, data); code != "" {
			t.Fatalf("a change: %s", code)
		}
		_, again := h.sender("amy", "198.51.100.9:1", "")
		for _, format := range []string{publishBytes, setField} {
			for name, ask := range map[string]func(string, ...any) string{"the connection": ask, "another connection of the user": again} {
				if code := ask(format, "y"); code != "rate_limited" {
					t.Errorf("%s, %s: %q", name, format, code)
				}
			}
		}
		if refused["user_stored"] != 4 {
			t.Errorf("counted %v", refused)
		}
		_, other := h.sender("bob", "192.0.2.1:1", "")
		_, anonymous := h.sender("", "192.0.2.1:1", "")
		for name, ask := range map[string]func(string, ...any) string{"another user": other, "a client without a user": anonymous} {
			if code := ask(publishBytes, data); code != "" {
				t.Errorf("%s: %s", name, code)
			}
		}
		<-time.After(time.Second) // 10 bytes; the field's name had one too many
		if code := ask(publishBytes, "z"); code != "" {
			t.Errorf("a second later: %s", code)
		}
		h.wantClosed("")
	})
}

// answerCode sends a message and returns the error code of the answer, "" for none.
func answerCode(t *testing.T, h *harness, format string, args ...any) string {
	t.Helper()
	h.send(format, args...)
	e := h.received()
	if len(e) != 1 {
		t.Fatalf("%s: answered with %+v", fmt.Sprintf(format, args...), e)
	}
	if e[0].Code != "" && !strings.Contains(e[0].Message, "limits.new_channels") {
		t.Errorf("refused with %q", e[0].Message)
	}
	return e[0].Code
}

// TestNewChannels checks that a client may create only so many channels, and may use any number
// of existing ones.
func TestNewChannels(t *testing.T) {
	const publish, subscribe = `{"type":"publish","channel":%q,"data":1}`, `{"type":"subscribe","channel":%q}`
	synctest.Test(t, func(t *testing.T) {
		pingEvery(t, 25*time.Second)
		o, refused := countRefusals(session.Options{Limits: session.Limits{NewChannels: 6, Channels: 4}})
		h := newHarness(t, o)
		for i := range 20 {
			if _, err := h.queue.AppendChannel(t.Context(), queue.ChannelPush{Channel: fmt.Sprint("old-", i), Data: []byte("1")}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 20 { // existing channels do not count
			if code := answerCode(t, h, publish, fmt.Sprint("old-", i)); code != "" {
				t.Fatalf("publish %d to an existing channel: %s", i, code)
			}
		}
		for i := range 4 {
			if code := answerCode(t, h, publish, fmt.Sprint("new-", i)); code != "" {
				t.Fatalf("new channel %d: %s", i, code)
			}
		}
		for i := range 2 {
			if code := answerCode(t, h, subscribe, fmt.Sprint("mine-", i)); code != "" {
				t.Fatalf("subscription %d: %s", i, code)
			}
		}
		for _, format := range []string{publish, subscribe} {
			if code := answerCode(t, h, format, "one-more"); code != "rate_limited" {
				t.Errorf("%s one too many: %q", format, code)
			}
		}
		if refused["new_channels"] != 2 {
			t.Errorf("counted %v", refused)
		}
		if n, err := h.queue.ChannelSize(t.Context(), "one-more"); n != 0 || err != nil {
			t.Errorf("%d messages were stored, %v", n, err)
		}
		for _, old := range []string{"old-0", "new-0", "mine-0"} {
			if code := answerCode(t, h, publish, old); code != "" {
				t.Errorf("publish to %s: %q", old, code)
			}
		}
		<-time.After(10 * time.Second)
		if code := answerCode(t, h, publish, "one-more"); code != "" {
			t.Errorf("10 s later: %s", code)
		}
		if code := answerCode(t, h, publish, "yet-another"); code != "rate_limited" {
			t.Errorf("another one: %q", code)
		}
		if n := session.SenderCount(h.Manager); n != 1 {
			t.Errorf("%d senders", n)
		}
		<-time.After(5 * time.Minute)
		h.tick(26)
		h.onLoop(func() {
			if session.HasRateUse(h.receiver) {
				t.Error("the session keeps its rateUse although all buckets are full")
			}
		})
		h.tick(6) // each tick looks at one of 32 shards
		if n := session.SenderCount(h.Manager); n != 0 {
			t.Errorf("%d senders are left although all buckets are full", n)
		}
	})
}

// TestResubscribeAllChannels checks that a client may subscribe to Limits.Channels at once,
// although Limits.NewChannels is lower.
func TestResubscribeAllChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, session.Options{Limits: session.Limits{NewChannels: 6, Channels: 40}})
		for i := range 40 {
			if code := answerCode(t, h, `{"type":"subscribe","channel":"c-%d"}`, i); code != "" {
				t.Fatalf("subscription %d: %s", i, code)
			}
		}
	})
}

// TestMessageWeights checks that messages which read many records count as several.
func TestMessageWeights(t *testing.T) {
	for typ, accepted := range map[string]int{"history": 4, "presence": 4, "unsubscribe": 40} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, session.Options{Limits: session.Limits{MessageRate: 10}})
			for i := range accepted + 1 {
				h.send(`{"type":%q,"channel":"news"}`, typ)
				if e := h.received(); len(e) != 1 || (e[0].Code == "rate_limited") != (i == accepted) {
					t.Fatalf("%s %d: %+v", typ, i, e)
				}
			}
		})
	}
}

// TestAnswersCountAsBytes checks that the answer to history counts towards the byte rate.
func TestAnswersCountAsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, session.Options{Limits: session.Limits{ByteRate: 10_000}})
		large := []byte(`"` + strings.Repeat("x", 20_000) + `"`)
		if _, err := h.queue.AppendChannel(t.Context(), queue.ChannelPush{Channel: "news", Data: large}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"history", "history", "error"} {
			h.send(`{"type":"history","channel":"news"}`)
			if e := h.received(); len(e) != 1 || e[0].Type != want {
				t.Fatalf("answer %d is %+v, want %s", i, e, want)
			}
		}
		<-time.After(time.Second)
		h.send(`{"type":"history","channel":"news"}`)
		if e := h.received(); len(e) != 1 || e[0].Type != "history" {
			t.Errorf("a second later: %+v", e)
		}
	})
}

// byteCounter is a queue that counts the bytes that are read.
type byteCounter struct {
	Queue
	bytes int
}

func (r *byteCounter) ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page] {
	out := r.Queue.ReadChannels(ctx, reads)
	for _, o := range out {
		for _, m := range o.Value.Messages {
			r.bytes += len(m.Data)
		}
	}
	return out
}

// TestHistoryReadsLittle checks that history reads about one answer, 32 KiB, and not a page of 1
// MiB.
func TestHistoryReadsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *byteCounter
		h := newHarnessOn(t, session.Options{}, func(q Queue) Queue { r = &byteCounter{Queue: q}; return r })
		for range 256 {
			data := []byte(`"` + strings.Repeat("x", 1000) + `"`)
			if _, err := h.queue.AppendChannel(t.Context(), queue.ChannelPush{Channel: "news", Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		h.send(`{"type":"history","channel":"news"}`)
		e := h.received()
		if len(e) != 1 || e[0].Messages == nil || len(*e[0].Messages) != 32 || !e[0].More {
			t.Fatalf("%+v", e)
		}
		if r.bytes > 40_000 {
			t.Errorf("%d bytes were read", r.bytes)
		}
	})
}
