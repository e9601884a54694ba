package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/session"
	"switchboard/queue"
)

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

// TestNewChannels checks that a connection may create only so many channels, and may use any number
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
			want := ""
			if old == "mine-0" { // subscribed to, but not in the store
				want = "rate_limited"
			}
			if code := answerCode(t, h, publish, old); code != want {
				t.Errorf("publish to %s: %q, want %q", old, code, want)
			}
		}
		<-time.After(10 * time.Second)
		if code := answerCode(t, h, publish, "one-more"); code != "" {
			t.Errorf("10 s later: %s", code)
		}
		if code := answerCode(t, h, publish, "yet-another"); code != "rate_limited" {
			t.Errorf("another one: %q", code)
		}
		<-time.After(5 * time.Minute)
		h.tick(26)
		h.onLoop(func() {
			if session.HasRateUse(h.receiver) {
				t.Error("the session keeps its rateUse although all buckets are full")
			}
		})
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
