package session_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/session"
	"switchboard/broker/transport"
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
		"messages":          {session.Options{MessageRate: 2}, ping, 8, "message_rate", "more than 2 messages a second; try again in 500 ms", 500 * time.Millisecond},
		"malformed":         {session.Options{MessageRate: 2}, bad, 8, "message_rate", "more than 2 messages", 500 * time.Millisecond},
		"bytes":             {session.Options{ByteRate: 1000}, long, 2, "byte_rate", "more than 1000 bytes a second; try again in", 3*time.Second - 500*time.Millisecond},
		"whatever is first": {session.Options{MessageRate: 2, ByteRate: 1 << 20}, ping, 8, "message_rate", "2 messages", 500 * time.Millisecond},
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

// TestTooLargeIsPaid: what was skipped had to be read.
func TestTooLargeIsPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, session.Options{MaxMessage: 1000, ByteRate: 1000})
		for _, want := range []string{"too_large", "too_large", "too_large", "too_large", "rate_limited"} {
			d.do(d.to.TooLarge)
			if e := d.hears(); len(e) != 1 || e[0].Code != want {
				t.Fatalf("%+v, want %s", e, want)
			}
		}
	})
}

// TestWhoGoesOnIsClosed: refusals cost, too.
func TestWhoGoesOnIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, session.Options{MessageRate: 1})
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
		d := newDesk(t, session.Options{MessageRate: 1})
		d.Hint("phone", 7, 0, []byte(`1`))
		d.settle()
		d.hears()
		for range 100 {
			d.say(`{"type":"ack","id":7}`)
			d.say(`{"type":"pong"}`)
		}
		if e := d.hears(); len(e) > 0 {
			t.Fatalf("answered with %+v", e[0])
		}
		for i := range 5 {
			d.say(`{"type":"ack","id":8}`)
			if e := d.hears(); len(e) != 1 || (e[0].Code == "rate_limited") != (i == 4) {
				t.Fatalf("%d: %+v", i, e)
			}
		}
	})
}

// TestPaceIsOnlyOfTheBusy: who sends a message a second, or only connects and subscribes, has none, and who was busy has
// none for long.
func TestPaceIsOnlyOfTheBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := greeted(t, session.Options{MessageRate: 10, ByteRate: 1000}, plain, transport.Hello{})
		paced := func(want bool) {
			t.Helper()
			d.do(func() {
				if session.Paced(d.to) != want {
					t.Errorf("what it sends is counted: %v, want %v", !want, want)
				}
			})
		}
		d.do(func() {
			d.to.Receive([]byte(`{"type":"connect","client":"phone"}`))
			d.to.Receive([]byte(`{"type":"subscribe","channel":"news"}`))
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
	d := greeted(t, session.Options{ConnectTimeout: 10 * time.Second}, plain, transport.Hello{})
	for range 9 {
		d.do(d.to.Heard)
		d.tick(1)
		d.want("")
	}
	d.do(d.to.Heard)
	d.tick(1)
	d.want(wire.CloseBadRequest)
	for _, say := range []string{`{"type":"pong"}`, `{"type":"ping"}`, `{"type":"ack","id":1}`} {
		d := greeted(t, session.Options{}, plain, transport.Hello{})
		d.say("%s", say)
		d.want(wire.CloseBadRequest)
	}
	d = greeted(t, session.Options{}, plain, transport.Hello{})
	d.do(d.to.TooLarge)
	d.want(wire.CloseBadRequest)
}

// TestConnectIsHeard has the time until a ping begin with connect, not with the connection.
func TestConnectIsHeard(t *testing.T) {
	d := greeted(t, session.Options{ConnectTimeout: 10 * time.Second, Ping: 25 * time.Second}, plain, transport.Hello{})
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
	o, refused := refusals(session.Options{MaxChannels: 2})
	d := newDesk(t, o)
	for _, channel := range []string{"a", "b"} {
		d.answers("subscribed", "", "", `{"type":"subscribe","channel":%q}`, channel)
	}
	d.answers("error", "rate_limited", "at most that many", `{"type":"subscribe","channel":"c"}`)
	if refused["channels"] != 1 {
		t.Errorf("counted %v", refused)
	}
}
