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

// brings says something and returns the code of the answer, empty when all is well.
func brings(t *testing.T, d *desk, format string, args ...any) string {
	t.Helper()
	d.say(format, args...)
	e := d.hears()
	if len(e) != 1 {
		t.Fatalf("%s: answered with %+v", fmt.Sprintf(format, args...), e)
	}
	if e[0].Code != "" && !strings.Contains(e[0].Message, "limits.new_channels") {
		t.Errorf("refused with %q", e[0].Message)
	}
	return e[0].Code
}

// TestNewChannels: a connection brings so many channels into being, and uses as many others as it
// likes.
func TestNewChannels(t *testing.T) {
	const publish, subscribe = `{"type":"publish","channel":%q,"data":1}`, `{"type":"subscribe","channel":%q}`
	synctest.Test(t, func(t *testing.T) {
		o, refused := refusals(session.Options{Limits: session.Limits{NewChannels: 6, Channels: 4}})
		d := newDesk(t, o)
		for i := range 20 {
			if _, err := d.queue.AppendChannel(t.Context(), queue.ChannelPush{Channel: fmt.Sprint("old-", i), Data: []byte("1")}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 20 { // what is there already counts for nothing
			if code := brings(t, d, publish, fmt.Sprint("old-", i)); code != "" {
				t.Fatalf("publish %d to what is there: %s", i, code)
			}
		}
		for i := range 4 {
			if code := brings(t, d, publish, fmt.Sprint("new-", i)); code != "" {
				t.Fatalf("new channel %d: %s", i, code)
			}
		}
		for i := range 2 {
			if code := brings(t, d, subscribe, fmt.Sprint("mine-", i)); code != "" {
				t.Fatalf("subscription %d: %s", i, code)
			}
		}
		for _, format := range []string{publish, subscribe} {
			if code := brings(t, d, format, "one-more"); code != "rate_limited" {
				t.Errorf("%s one too many: %q", format, code)
			}
		}
		if refused["new_channels"] != 2 {
			t.Errorf("counted %v", refused)
		}
		if n, err := d.queue.ChannelSize(t.Context(), "one-more"); n != 0 || err != nil {
			t.Errorf("%d messages were stored, %v", n, err)
		}
		for _, old := range []string{"old-0", "new-0", "mine-0"} {
			want := ""
			if old == "mine-0" { // it is subscribed to, and the store knows nothing of it
				want = "rate_limited"
			}
			if code := brings(t, d, publish, old); code != want {
				t.Errorf("publish to %s: %q, want %q", old, code, want)
			}
		}
		<-time.After(10 * time.Second)
		if code := brings(t, d, publish, "one-more"); code != "" {
			t.Errorf("10 s later: %s", code)
		}
		if code := brings(t, d, publish, "yet-another"); code != "rate_limited" {
			t.Errorf("another one: %q", code)
		}
		<-time.After(5 * time.Minute)
		d.tick(26)
		d.do(func() {
			if session.Paced(d.to) {
				t.Error("what it used is remembered although all of it came back")
			}
		})
	})
}

// TestComeBackWithAllChannels: at once as many as a connection may have, also where fewer a minute
// are allowed.
func TestComeBackWithAllChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, session.Options{Limits: session.Limits{NewChannels: 6, Channels: 40}})
		for i := range 40 {
			if code := brings(t, d, `{"type":"subscribe","channel":"c-%d"}`, i); code != "" {
				t.Fatalf("subscription %d: %s", i, code)
			}
		}
	})
}

// TestHeavyMessages: what makes the store read much counts more.
func TestHeavyMessages(t *testing.T) {
	for typ, fits := range map[string]int{"history": 4, "presence": 4, "unsubscribe": 40} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, session.Options{Limits: session.Limits{MessageRate: 10}})
			for i := range fits + 1 {
				d.say(`{"type":%q,"channel":"news"}`, typ)
				if e := d.hears(); len(e) != 1 || (e[0].Code == "rate_limited") != (i == fits) {
					t.Fatalf("%s %d: %+v", typ, i, e)
				}
			}
		})
	}
}

// TestAnswersAreBytes: a history is asked for in few bytes, and answered with many, which count.
func TestAnswersAreBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, session.Options{Limits: session.Limits{ByteRate: 10_000}})
		large := []byte(`"` + strings.Repeat("x", 20_000) + `"`)
		if _, err := d.queue.AppendChannel(t.Context(), queue.ChannelPush{Channel: "news", Data: large}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"history", "history", "error"} {
			d.say(`{"type":"history","channel":"news"}`)
			if e := d.hears(); len(e) != 1 || e[0].Type != want {
				t.Fatalf("answer %d is %+v, want %s", i, e, want)
			}
		}
		<-time.After(time.Second)
		d.say(`{"type":"history","channel":"news"}`)
		if e := d.hears(); len(e) != 1 || e[0].Type != "history" {
			t.Errorf("a second later: %+v", e)
		}
	})
}

// reading is a queue that notes how many bytes were read.
type reading struct {
	queue.Queue
	bytes int
}

func (r *reading) ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page] {
	out := r.Queue.ReadChannels(ctx, reads)
	for _, o := range out {
		for _, m := range o.Value.Messages {
			r.bytes += len(m.Data)
		}
	}
	return out
}

// TestHistoryReadsWhatItAnswers: and not a page of a mebibyte for 32 KiB.
func TestHistoryReadsWhatItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *reading
		d := newDeskOn(t, session.Options{}, func(q queue.Queue) queue.Queue { r = &reading{Queue: q}; return r })
		for range 256 {
			data := []byte(`"` + strings.Repeat("x", 1000) + `"`)
			if _, err := d.queue.AppendChannel(t.Context(), queue.ChannelPush{Channel: "news", Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		d.say(`{"type":"history","channel":"news"}`)
		e := d.hears()
		if len(e) != 1 || e[0].Messages == nil || len(*e[0].Messages) != 32 || !e[0].More {
			t.Fatalf("%+v", e)
		}
		if r.bytes > 40_000 {
			t.Errorf("%d bytes were read", r.bytes)
		}
	})
}
