package session_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// TestRates has a client that sends all its messages within a second.
func TestRates(t *testing.T) {
	const ping, bad = `{"type":"ping"}`, `{"type":5}`
	long := fmt.Sprintf(`{"type":"ping","x":%q}`, strings.Repeat("x", 3000))
	for name, c := range map[string]struct {
		opts    session.Options
		message string
		burst   int           // messages that are accepted at once
		metric  string        // that counts the refusal
		text    string        // in the refusal
		wait    time.Duration // after a refusal, until exactly one message is accepted
	}{
		"messages":  {session.Options{Limits: session.Limits{MessageRate: 2}}, ping, 8, "message_rate", "more than 2 messages a second (limits.message_rate); try again in 500 ms", 500 * time.Millisecond},
		"malformed": {session.Options{Limits: session.Limits{MessageRate: 2}}, bad, 8, "message_rate", "more than 2 messages", 500 * time.Millisecond},
		"bytes":     {session.Options{Limits: session.Limits{ByteRate: 1000}}, long, 2, "byte_rate", "more than 1000 bytes a second (limits.byte_rate); try again in", 3*time.Second - 500*time.Millisecond},
		"both":      {session.Options{Limits: session.Limits{MessageRate: 2, ByteRate: 1 << 20}}, ping, 8, "message_rate", "2 messages", 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, refused := countRefusals(c.opts)
				h := newHarness(t, o)
				expectAnswer := func(metric string) { // metric counts the refusal; "" means that the message is accepted
					t.Helper()
					h.send("%s", c.message)
					e := h.received()
					if len(e) == 1 && metric != "" && (e[0].AfterMS < 1 || !wire.ErrorOf(e[0]).Retryable()) {
						t.Errorf("after_ms %d, retry %v: a rate clears by waiting", e[0].AfterMS, e[0].Retry)
					}
					if len(e) != 1 || (e[0].Code == "rate_limited") != (metric != "") || metric != "" && !strings.Contains(e[0].Message, c.text) {
						t.Fatalf("%+v", e)
					}
				}
				for range c.burst {
					expectAnswer("")
				}
				expectAnswer(c.metric)
				if len(refused) != 1 || refused[c.metric] != 1 {
					t.Errorf("counted %v", refused)
				}
				<-time.After(c.wait)
				expectAnswer("")
				expectAnswer(c.metric)
				h.wantClosed("")
			})
		})
	}
}

// TestTooLargeMessagesCount checks that the bytes of a skipped message count. The transport reports
// them through Control.
func TestTooLargeMessagesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, session.Options{Limits: session.Limits{Message: 1000, ByteRate: 1000}})
		for range 4 {
			h.onLoop(func() {
				h.receiver.Control(0, 1000)
				h.receiver.TooLarge(wire.RefOf(7))
			})
			if e := h.received(); len(e) != 1 || e[0].Code != "too_large" || e[0].Ref != wire.RefOf(7) {
				t.Fatalf("%+v, want too_large", e)
			}
		}
		h.expect("error", "rate_limited", "bytes a second", `{"type":"ping"}`)
	})
}

// TestRepeatedRefusalsClose checks that a client is disconnected after too many refusals in a row.
func TestRepeatedRefusalsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, session.Options{Limits: session.Limits{MessageRate: 1}})
		for range 3 { // accepted messages in between reset the count
			<-time.After(4 * time.Second)
			for range 4 + 64 {
				h.send(`{"type":"ping"}`)
			}
			h.wantClosed("")
		}
		<-time.After(time.Second)
		for range 1 + 64 {
			h.send(`{"type":"ping"}`)
		}
		h.wantClosed("")
		h.send(`{"type":"ping"}`)
		h.wantClosed(wire.CloseOverloaded)
		h.onLoop(func() {
			if h.sock.afterMS < 1000 {
				t.Errorf("it may reconnect after %d ms", h.sock.afterMS)
			}
		})
	})
}

// TestAcksDoNotCount checks that the message rate does not limit acknowledgements of new messages,
// and that it limits invalid ones.
func TestAcksDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pingEvery(t, 25*time.Second)
		h := newHarness(t, session.Options{Limits: session.Limits{MessageRate: 1}})
		h.Hint("phone", 7, 0, []byte(`1`))
		h.settle()
		h.received()
		for id := int64(8); id < 100; id++ {
			h.Hint("phone", id, id-1, []byte(`1`))
			h.settle()
			h.received()
			h.send(`{"type":"ack","id":%d}`, id)
		}
		h.tick(30)
		h.send(`{"type":"pong"}`) // the server has sent a ping
		if e := h.received(); len(e) > 0 {
			t.Fatalf("answered with %+v", e[0])
		}
		for i := range 5 {
			h.send(`{"type":"ack","id":100}`)
			if e := h.received(); len(e) != 1 || (e[0].Code == "rate_limited") != (i == 4) {
				t.Fatalf("%d: %+v", i, e)
			}
		}
	})
}

// TestRepeatedAnswersCount checks that a second pong to a ping, and a second acknowledgement of an
// id, count as messages.
func TestRepeatedAnswersCount(t *testing.T) {
	for _, again := range []string{`{"type":"pong"}`, `{"type":"ack","id":7}`} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, session.Options{Limits: session.Limits{MessageRate: 1}})
			h.Hint("phone", 7, 0, []byte(`1`))
			h.settle()
			h.send(`{"type":"ack","id":7}`)
			h.received()
			for range 4 {
				h.send("%s", again)
			}
			if e := h.received(); len(e) > 0 {
				t.Fatalf("%s is answered with %+v", again, e[0])
			}
			h.send("%s", again)
			if e := h.received(); len(e) != 1 || e[0].Code != "rate_limited" {
				t.Fatalf("%s is answered with %+v, want rate_limited", again, e)
			}
		})
	}
}

// TestControlFramesCount checks, also before connect, that a client which sends too many control
// frames is closed, and one which sends few is not. A ping above the rate gets no pong.
func TestControlFramesCount(t *testing.T) {
	for name, requests := range map[string][]wire.Request{"before connect": nil, "after": connect("phone", "t")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, refused := countRefusals(session.Options{Limits: session.Limits{MessageRate: 2}, Timing: session.Timing{Connect: time.Hour}})
				h := newUnconnected(t, o, unwrapped, requests)
				control := func(want bool) {
					t.Helper()
					var taken bool
					h.onLoop(func() { taken = h.receiver.Control(1, 0) })
					if taken != want {
						t.Fatalf("a frame is taken: %v, want %v", taken, want)
					}
				}
				for range 100 {
					<-time.After(4 * time.Second)
					h.tick(4)
					for range 8 {
						control(true)
					}
				}
				for taken := true; taken; {
					h.onLoop(func() { taken = h.receiver.Control(1, 0) })
				}
				for i := range 100 { // twice what is allowed
					<-time.After(500 * time.Millisecond)
					control(true)
					control(false)
					if h.wantClosed(""); refused["control_rate"] != i+2 {
						t.Fatalf("counted %v", refused)
					}
				}
				for range 64 {
					control(false)
				}
				h.wantClosed(wire.CloseOverloaded)
			})
		})
	}
}

// TestFloodOfControlFrames checks that a flood ends the connection although some frames are within
// the rate.
func TestFloodOfControlFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, session.Options{Limits: session.Limits{MessageRate: 500}})
		frames := 0
		for closed := false; !closed; frames += 10 {
			<-time.After(time.Millisecond) // 10,000 a second
			h.onLoop(func() {
				for range 10 {
					h.receiver.Control(1, 0)
				}
				closed = h.sock.closed != ""
			})
		}
		h.wantClosed(wire.CloseOverloaded)
		if frames > 2_300 {
			t.Errorf("closed after %d frames, want no more than the burst of 2,000 and a few", frames)
		}
	})
}

// TestRateUseIsDropped checks that a session has no rateUse if it sends one message per second, or
// only connects and subscribes, and that a busy session drops its rateUse when it is idle again.
func TestRateUseIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pingEvery(t, 25*time.Second)
		h := newUnconnected(t, session.Options{Limits: session.Limits{MessageRate: 10, ByteRate: 1000}}, unwrapped, nil)
		hasRateUse := func(want bool) {
			t.Helper()
			h.onLoop(func() {
				if session.HasRateUse(h.receiver) != want {
					t.Errorf("the session has a rateUse: %v, want %v", !want, want)
				}
			})
		}
		h.onLoop(func() {
			receive(h.receiver, `{"type":"connect","client":"phone"}`)
			receive(h.receiver, `{"type":"subscribe","channel":"news"}`)
		})
		h.settle()
		if e := h.received(); len(e) != 2 || e[1].Type != "subscribed" {
			t.Fatalf("%+v", e)
		}
		hasRateUse(false)
		for range 100 {
			h.tick(1)
			h.send(`{"type":"ping"}`)
			hasRateUse(false)
		}
		h.send(`{"type":"ping"}`)
		hasRateUse(true)
		<-time.After(time.Minute)
		h.tick(26) // a ping is due, so the session is checked
		hasRateUse(false)
		h.onLoop(func() {
			if session.HasExtra(h.receiver) {
				t.Error("the session still has extra state")
			}
		})
		h.send(`{"type":"ping","x":%q}`, strings.Repeat("x", 1000)) // more than one second allows
		hasRateUse(true)
		h.send(`{"type":"ping","x":%q}`, strings.Repeat("x", 50_000)) // the byte bucket takes longer to fill than the message bucket
		for _, want := range []bool{true, false} {
			<-time.After(30 * time.Second)
			h.tick(26)
			hasRateUse(want)
		}
	})
}

// TestConnectTimeout checks that only connect prevents the connect timeout.
func TestConnectTimeout(t *testing.T) {
	h := newUnconnected(t, session.Options{Timing: session.Timing{Connect: 10 * time.Second}}, unwrapped, nil)
	for range 9 {
		h.onLoop(func() { h.receiver.Control(1, 0) })
		h.tick(1)
		h.wantClosed("")
	}
	h.onLoop(func() { h.receiver.Control(1, 0) })
	h.tick(1)
	h.wantClosed(wire.CloseBadRequest)
	for _, message := range []string{`{"type":"pong"}`, `{"type":"ping"}`, `{"type":"ack","id":1}`} {
		h := newUnconnected(t, session.Options{}, unwrapped, nil)
		h.send("%s", message)
		h.wantClosed(wire.CloseBadRequest)
	}
	h = newUnconnected(t, session.Options{}, unwrapped, nil)
	h.onLoop(func() { h.receiver.TooLarge(wire.Ref{}) })
	h.wantClosed(wire.CloseBadRequest)
}

// TestPingIntervalBeginsWithConnect checks that it does not begin when the connection is accepted.
func TestPingIntervalBeginsWithConnect(t *testing.T) {
	pingEvery(t, 25*time.Second)
	h := newUnconnected(t, session.Options{Timing: session.Timing{Connect: 10 * time.Second}}, unwrapped, nil)
	h.tick(9)
	h.send(`{"type":"connect","client":"phone"}`)
	for pings, ticks := range []int{24, 1} { // no ping for 24 ticks, and one at the next tick
		h.tick(ticks)
		h.onLoop(func() {
			if h.sock.pings != pings {
				t.Errorf("pinged %d times, want %d", h.sock.pings, pings)
			}
		})
	}
}

func TestChannelLimit(t *testing.T) {
	o, refused := countRefusals(session.Options{Limits: session.Limits{Channels: 2}})
	h := newHarness(t, o)
	for _, channel := range []string{"a", "b"} {
		h.expect("subscribed", "", "", `{"type":"subscribe","channel":%q}`, channel)
	}
	e := h.expect("error", "rate_limited", "at most that many", `{"type":"subscribe","channel":"c"}`)
	if e.Retry == nil || *e.Retry || e.AfterMS != 0 || wire.ErrorOf(e).Retryable() {
		t.Errorf("retry %v, after_ms %d: the limit does not clear by waiting", e.Retry, e.AfterMS)
	}
	if refused["channels"] != 1 {
		t.Errorf("counted %v", refused)
	}
}

// TestConnectedNamesTheLimits checks that a client learns what it may send, so that it can pace
// itself and refuse what is too large.
func TestConnectedNamesTheLimits(t *testing.T) {
	h := newUnconnected(t, session.Options{
		Limits:   session.Limits{Message: 1000, Channels: 9, MessageRate: 50, ByteRate: 7000},
		Requests: session.Requests{Rate: 3},
	}, unwrapped, nil)
	got := h.expect("connected", "", "", `{"type":"connect","client":"phone"}`).Limits
	want := wire.Limits{Message: 1000, Channels: 9, MessageRate: 50, ByteRate: 7000, RequestRate: 3, Waiting: 64, WaitingBytes: 128 << 10}
	if got == nil || *got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
}

// TestConnectedNamesAnIgnoredToken: a broker without keys for tokens says that it has not read the
// token. Otherwise the client would be without a user and without an error.
func TestConnectedNamesAnIgnoredToken(t *testing.T) {
	for name, c := range map[string]struct {
		access session.Access
		token  string
		want   bool
	}{
		"open":                    {token: "amy|", want: true},
		"open, without a token":   {},
		"with keys":               {access: session.Access{Verify: verifying(t)}, token: "amy|"},
		"with keys, and no token": {access: session.Access{Verify: verifying(t), Anonymous: true}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newUnconnected(t, session.Options{Access: c.access}, unwrapped, nil)
			e := h.expect("connected", "", "", `{"type":"connect","client":"phone","token":%q}`, c.token)
			if e.TokenIgnored != c.want {
				t.Errorf("token_ignored is %v", e.TokenIgnored)
			}
		})
	}
}
