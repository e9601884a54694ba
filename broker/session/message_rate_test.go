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

func refusals(o session.Options) (session.Options, map[string]int) {
	refused := map[string]int{}
	o.Metrics.Refused = func(what string) { refused[what]++ }
	return o, refused
}

// TestRates has a client whose every message is the second within a second.
func TestRates(t *testing.T) {
	const ping, bad = `{"type":"ping"}`, `{"type":5}`
	long := fmt.Sprintf(`{"type":"ping","x":%q}`, strings.Repeat("x", 3000))
	for name, c := range map[string]struct {
		opts  session.Options
		say   string
		fits  int // at once
		what  string
		about string
		wait  time.Duration // until one more fits, and no two
	}{
		"messages":          {session.Options{Limits: session.Limits{MessageRate: 2}}, ping, 8, "message_rate", "more than 2 messages a second; try again in 500 ms", 500 * time.Millisecond},
		"malformed":         {session.Options{Limits: session.Limits{MessageRate: 2}}, bad, 8, "message_rate", "more than 2 messages", 500 * time.Millisecond},
		"bytes":             {session.Options{Limits: session.Limits{ByteRate: 1000}}, long, 2, "byte_rate", "more than 1000 bytes a second; try again in", 3*time.Second - 500*time.Millisecond},
		"whatever is first": {session.Options{Limits: session.Limits{MessageRate: 2, ByteRate: 1 << 20}}, ping, 8, "message_rate", "2 messages", 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, refused := refusals(c.opts)
				d := newDesk(t, o)
				try := func(what string) {
					t.Helper()
					d.say("%s", c.say)
					e := d.hears()
					if len(e) != 1 || (e[0].Code == "rate_limited") != (what != "") || what != "" && !strings.Contains(e[0].Message, c.about) {
						t.Fatalf("%+v", e)
					}
				}
				for range c.fits {
					try("")
				}
				try(c.what)
				if len(refused) != 1 || refused[c.what] != 1 {
					t.Errorf("counted %v", refused)
				}
				<-time.After(c.wait)
				try("")
				try(c.what)
				d.want("")
			})
		})
	}
}

// TestTooLargeIsPaid: what was skipped had to be read. The transport tells of its bytes as they
// come.
func TestTooLargeIsPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, session.Options{Limits: session.Limits{Message: 1000, ByteRate: 1000}})
		for range 4 {
			d.do(func() {
				d.to.Control(0, 1000)
				d.to.TooLarge()
			})
			if e := d.hears(); len(e) != 1 || e[0].Code != "too_large" {
				t.Fatalf("%+v, want too_large", e)
			}
		}
		d.answers("error", "rate_limited", "bytes a second", `{"type":"ping"}`)
	})
}

// TestWhoGoesOnIsClosed: refusals cost, too.
func TestWhoGoesOnIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, session.Options{Limits: session.Limits{MessageRate: 1}})
		for range 3 { // now and then is not on and on
			<-time.After(4 * time.Second)
			for range 4 + 64 {
				d.say(`{"type":"ping"}`)
			}
			d.want("")
		}
		<-time.After(time.Second)
		for range 1 + 64 {
			d.say(`{"type":"ping"}`)
		}
		d.want("")
		d.say(`{"type":"ping"}`)
		d.want(wire.CloseOverloaded)
		d.do(func() {
			if d.sock.afterMS < 1000 {
				t.Errorf("it may come back after %d ms", d.sock.afterMS)
			}
		})
	})
}

// TestAcknowledgementsAreNoMessages: who is sent much must be able to say that it came. Made-up ones are.
func TestAcknowledgementsAreNoMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pingEvery(t, 25*time.Second)
		d := newDesk(t, session.Options{Limits: session.Limits{MessageRate: 1}})
		d.Hint("phone", 7, 0, []byte(`1`))
		d.settle()
		d.hears()
		for id := int64(8); id < 100; id++ {
			d.Hint("phone", id, id-1, []byte(`1`))
			d.settle()
			d.hears()
			d.say(`{"type":"ack","id":%d}`, id)
		}
		d.tick(30)
		d.say(`{"type":"pong"}`) // the broker has asked for it
		if e := d.hears(); len(e) > 0 {
			t.Fatalf("answered with %+v", e[0])
		}
		for i := range 5 {
			d.say(`{"type":"ack","id":100}`)
			if e := d.hears(); len(e) != 1 || (e[0].Code == "rate_limited") != (i == 4) {
				t.Fatalf("%d: %+v", i, e)
			}
		}
	})
}

// TestAnswersTwiceAreMessages: one pong answers one ping, and an id is acknowledged once.
func TestAnswersTwiceAreMessages(t *testing.T) {
	for _, again := range []string{`{"type":"pong"}`, `{"type":"ack","id":7}`} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, session.Options{Limits: session.Limits{MessageRate: 1}})
			d.Hint("phone", 7, 0, []byte(`1`))
			d.settle()
			d.say(`{"type":"ack","id":7}`)
			d.hears()
			for range 4 {
				d.say("%s", again)
			}
			if e := d.hears(); len(e) > 0 {
				t.Fatalf("%s is answered with %+v", again, e[0])
			}
			d.say("%s", again)
			if e := d.hears(); len(e) != 1 || e[0].Code != "rate_limited" {
				t.Fatalf("%s is answered with %+v, want rate_limited", again, e)
			}
		})
	}
}

// TestControlFramesArePaced also before connect: a client that goes on is closed, one that sends
// some now and then is not, and a ping above the rate gets no pong.
func TestControlFramesArePaced(t *testing.T) {
	for name, hello := range map[string][]wire.Request{"before connect": nil, "after": connect("phone", "t")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, refused := refusals(session.Options{Limits: session.Limits{MessageRate: 2}, Timing: session.Timing{Connect: time.Hour}})
				d := greeted(t, o, plain, hello)
				control := func(want bool) {
					t.Helper()
					var taken bool
					d.do(func() { taken = d.to.Control(1, 0) })
					if taken != want {
						t.Fatalf("a frame is taken: %v, want %v", taken, want)
					}
				}
				for range 100 {
					<-time.After(4 * time.Second)
					d.tick(4)
					for range 8 {
						control(true)
					}
				}
				for taken := true; taken; {
					d.do(func() { taken = d.to.Control(1, 0) })
				}
				for i := range 100 { // twice what is allowed
					<-time.After(500 * time.Millisecond)
					control(true)
					control(false)
					if d.want(""); refused["control_rate"] != i+2 {
						t.Fatalf("counted %v", refused)
					}
				}
				for range 64 {
					control(false)
				}
				d.want(wire.CloseOverloaded)
			})
		})
	}
}

// TestFloodOfControlFrames: a flood of them is closed although some pass at all times.
func TestFloodOfControlFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, session.Options{Limits: session.Limits{MessageRate: 500}})
		frames := 0
		for closed := false; !closed; frames += 10 {
			<-time.After(time.Millisecond) // 10,000 a second
			d.do(func() {
				for range 10 {
					d.to.Control(1, 0)
				}
				closed = d.sock.closed != ""
			})
		}
		d.want(wire.CloseOverloaded)
		if frames > 2_300 {
			t.Errorf("closed after %d frames, want no more than the burst of 2,000 and a few", frames)
		}
	})
}

// TestPaceIsOnlyOfTheBusy: who sends a message a second, or only connects and subscribes, has none, and who was busy has
// none for long.
func TestPaceIsOnlyOfTheBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := greeted(t, session.Options{Limits: session.Limits{MessageRate: 10, ByteRate: 1000}}, plain, nil)
		paced := func(want bool) {
			t.Helper()
			d.do(func() {
				if session.Paced(d.to) != want {
					t.Errorf("what it sends is counted: %v, want %v", !want, want)
				}
			})
		}
		d.do(func() {
			receive(d.to, []byte(`{"type":"connect","client":"phone"}`))
			receive(d.to, []byte(`{"type":"subscribe","channel":"news"}`))
		})
		d.settle()
		if e := d.hears(); len(e) != 2 || e[1].Type != "subscribed" {
			t.Fatalf("%+v", e)
		}
		paced(false)
		for range 100 {
			d.tick(1)
			d.say(`{"type":"ping"}`)
			paced(false)
		}
		d.say(`{"type":"ping"}`)
		paced(true)
		<-time.After(time.Minute)
		d.tick(26) // a ping is due, so it is looked at
		paced(false)
		d.do(func() {
			if !session.Rests(d.to) {
				t.Error("something is left")
			}
		})
		d.say(`{"type":"ping","x":%q}`, strings.Repeat("x", 1000)) // more than a second's worth
		paced(true)
		d.say(`{"type":"ping","x":%q}`, strings.Repeat("x", 50_000)) // of which some is owed for longer than the messages
		for _, want := range []bool{true, false} {
			<-time.After(30 * time.Second)
			d.tick(26)
			paced(want)
		}
	})
}

// TestNothingHoldsOffTheEndOfTheTimeToConnect but a connect.
func TestNothingHoldsOffTheEndOfTheTimeToConnect(t *testing.T) {
	d := greeted(t, session.Options{Timing: session.Timing{Connect: 10 * time.Second}}, plain, nil)
	for range 9 {
		d.do(func() { d.to.Control(1, 0) })
		d.tick(1)
		d.want("")
	}
	d.do(func() { d.to.Control(1, 0) })
	d.tick(1)
	d.want(wire.CloseBadRequest)
	for _, say := range []string{`{"type":"pong"}`, `{"type":"ping"}`, `{"type":"ack","id":1}`} {
		d := greeted(t, session.Options{}, plain, nil)
		d.say("%s", say)
		d.want(wire.CloseBadRequest)
	}
	d = greeted(t, session.Options{}, plain, nil)
	d.do(d.to.TooLarge)
	d.want(wire.CloseBadRequest)
}

// TestConnectIsHeard has the time until a ping begin with connect, not with the connection.
func TestConnectIsHeard(t *testing.T) {
	pingEvery(t, 25*time.Second)
	d := greeted(t, session.Options{Timing: session.Timing{Connect: 10 * time.Second}}, plain, nil)
	d.tick(9)
	d.say(`{"type":"connect","client":"phone"}`)
	for pings, ticks := range []int{24, 1} {
		d.tick(ticks)
		d.do(func() {
			if d.sock.pings != pings {
				t.Errorf("pinged %d times, want %d", d.sock.pings, pings)
			}
		})
	}
}

func TestChannelsAreCounted(t *testing.T) {
	o, refused := refusals(session.Options{Limits: session.Limits{Channels: 2}})
	d := newDesk(t, o)
	for _, channel := range []string{"a", "b"} {
		d.answers("subscribed", "", "", `{"type":"subscribe","channel":%q}`, channel)
	}
	d.answers("error", "rate_limited", "at most that many", `{"type":"subscribe","channel":"c"}`)
	if refused["channels"] != 1 {
		t.Errorf("counted %v", refused)
	}
}
