//go:build long

package attack

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gobwas/ws"
)

// endlessMessages sends messages above the size limit. The broker must skip them without storing
// them.
func endlessMessages(t *testing.T, s *scenario) {
	chunk := strings.Repeat("x", 1<<20)
	for _, e := range endpoints {
		a := s.connectUser(t, e, "mallory")
		if !e.frames {
			for range 4 {
				a.sendRaw(chunk)
			}
			a.sendRaw("\n")
		} else if e.extensions == "" {
			a.sendRaw(string(ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame(make([]byte, 4<<20))))))
		} else {
			a.sendRaw(string(ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame(make([]byte, 512<<10))))))
		}
		if got := a.reply(); got != "error:too_large" {
			t.Errorf("%s: got %q, want error:too_large", e.name, got)
		}
		a.send(`{"type":"ping"}`)
		a.waitFor(t, "pong")
		_ = a.Close()
	}
	// The length in a frame header can exceed the memory.
	for _, e := range webSockets {
		for range 50 {
			a := s.connectUser(t, e, "mallory")
			a.sendRaw("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00" + chunk[:1<<16])
			_ = a.Close()
		}
	}
}

// smallFragments sends a message with one byte per frame, and empty frames and pings between them.
// This is unusual, but valid.
func smallFragments(t *testing.T, s *scenario) {
	const text = `{"type":"ping"}`
	for _, e := range webSockets {
		a := s.connectUser(t, e, "mallory")
		var b bytes.Buffer
		put := func(op ws.OpCode, fin bool, payload string) {
			b.Write(ws.MustCompileFrame(ws.MaskFrame(ws.NewFrame(op, fin, []byte(payload)))))
		}
		put(ws.OpText, false, "")
		for _, c := range []byte(text) {
			for range 20 {
				put(ws.OpContinuation, false, "")
			}
			put(ws.OpPing, true, "are you there?")
			put(ws.OpContinuation, false, string(c))
		}
		put(ws.OpContinuation, true, "")
		a.sendRaw(b.String())
		for pongs := 0; pongs < len(text)+1; { // one per ping frame, and one for the message
			e, code, err := a.readEvent()
			if code != "" || err != nil {
				t.Errorf("got %q (%v)", code, err)
				return
			}
			if e.Type == "pong" {
				pongs++
			}
		}
		_ = a.Close()
		s.overlongFragments(t, e)
	}
}

// overlongFragments sends a message above the size limit in fragments of 1 KB.
func (s *scenario) overlongFragments(t *testing.T, e endpoint) {
	t.Helper()
	a := s.connectUser(t, e, "mallory")
	a.sendFrame(ws.NewFrame(ws.OpText, false, nil))
	for range 500 {
		a.sendFrame(ws.NewFrame(ws.OpContinuation, false, make([]byte, 1<<10)))
	}
	a.sendFrame(ws.NewFrame(ws.OpContinuation, true, nil))
	if got := a.reply(); got != "error:too_large" {
		t.Errorf("%s: fragments: got %q, want error:too_large", e.name, got)
	}
	_ = a.Close()
}

// controlFrames floods the broker with input that contains no message or only pongs, before and
// after connect. The broker must close such connections.
func controlFrames(t *testing.T, s *scenario) {
	masked := func(f ws.Frame) []byte { return ws.MustCompileFrame(ws.MaskFrame(f)) }
	frames := map[string][]byte{
		"ping":     masked(ws.NewPingFrame(bytes.Repeat([]byte("p"), 125))),
		"pong":     masked(ws.NewPongFrame(nil)),
		"fragment": masked(ws.NewFrame(ws.OpContinuation, false, nil)),
		"line":     []byte("\n"),
		"JSON":     []byte(`{"type":"pong"}` + "\n"),
	}
	for name, frame := range frames {
		for _, e := range endpoints {
			if e.frames != (name != "line" && name != "JSON") {
				continue
			}
			for _, connected := range []bool{true, false} {
				if name == "JSON" && !connected {
					continue // before connect, any such message ends the connection
				}
				a := s.open(t, e, "")
				if connected {
					a.send(connectAs(fmt.Sprintf("flood-%d", s.clientCount.Add(1)), s.token("mallory")))
					a.waitFor(t, "connected")
				}
				if name == "fragment" {
					a.sendFrame(ws.NewFrame(ws.OpText, false, nil))
				}
				a.flood(frame)
				if got, want := a.outcomeWithoutRateLimits(), e.closing("", "overloaded", 4009); got != want {
					t.Errorf("a flood of %ss, %s, connected: %v: got %q, want %q", name, e.name, connected, got, want)
				}
			}
		}
	}
}

// flood sends far more frames than the rate limits allow, until the connection ends.
func (a *attacker) flood(frame []byte) {
	go func() {
		for range 100 {
			a.sendRaw(string(bytes.Repeat(frame, 500)))
		}
	}()
}

// outcomeWithoutRateLimits returns the outcome without the rate limit errors at its start. Each
// message may cause one.
func (a *attacker) outcomeWithoutRateLimits() string {
	codes := strings.Fields(a.outcome())
	for len(codes) > 0 && strings.HasPrefix(codes[0], "error:rate_limited") {
		codes = codes[1:]
	}
	return strings.Join(codes, " ")
}

// brokenFrames sends frames that RFC 6455 forbids.
func brokenFrames(t *testing.T, s *scenario) {
	masked := func(f ws.Frame) string { return string(ws.MustCompileFrame(ws.MaskFrame(f))) }
	reserved := func(f ws.Frame, rsv byte) string {
		f.Header.Rsv = rsv
		return masked(f)
	}
	text := func(fin bool) string { return masked(ws.NewFrame(ws.OpText, fin, []byte("{}"))) }
	for name, c := range map[string]struct{ bytes, want string }{
		"a control frame of 126 bytes":    {masked(ws.NewFrame(ws.OpPing, true, make([]byte, 126))), "1002"},
		"a control frame in fragments":    {masked(ws.NewFrame(ws.OpPing, false, nil)), "1002"},
		"a frame that is not masked":      {string(ws.MustCompileFrame(ws.NewTextFrame([]byte("{}")))), "1002"},
		"a continuation of nothing":       {masked(ws.NewFrame(ws.OpContinuation, true, nil)), "1002"},
		"a text within a text":            {text(false) + text(true), "1002"},
		"an unknown frame":                {masked(ws.NewFrame(3, true, nil)), "1002"},
		"an unknown control frame":        {masked(ws.NewFrame(11, true, nil)), "1002"},
		"a reserved bit":                  {reserved(ws.NewTextFrame([]byte("{}")), 0b010), "1002"},
		"a compressed control frame":      {reserved(ws.NewPingFrame(nil), 0b100), "1002"},
		"binary":                          {masked(ws.NewBinaryFrame([]byte("{}"))), "1003"},
		"a length with its first bit set": {"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", "1002"},
	} {
		for _, e := range webSockets {
			a := s.connectUser(t, e, "mallory")
			a.sendRaw(c.bytes)
			// The library for compressed connections closes some of these without a close frame.
			if got := a.outcome(); got != c.want && !(got == "" && e.extensions != "") {
				t.Errorf("%s, %s: got %q, want %q", name, e.name, got, c.want)
			}
		}
	}
	for _, e := range webSockets { // invalid close frames
		for _, body := range []string{"x", "\x03\xe7", "\x0b\xb8\xff\xfe"} {
			a := s.connectUser(t, e, "mallory")
			a.sendFrame(ws.NewFrame(ws.OpClose, true, []byte(body)))
			if got := a.outcome(); got == "" || strings.Contains(got, "timeout") {
				t.Errorf("a close frame with %q, %s: got %q", body, e.name, fmt.Sprint(got))
			}
		}
	}
}
