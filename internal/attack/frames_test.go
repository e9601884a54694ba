package attack

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gobwas/ws"
)

// endlessMessages are larger than allowed; they are skipped, and keep no memory.
func endlessMessages(t *testing.T, s *siege) {
	chunk := strings.Repeat("x", 1<<20)
	for _, e := range entrances {
		a := s.known(t, e, "mallory")
		if !e.frames {
			for range 4 {
				a.raw(chunk)
			}
			a.raw("\n")
		} else if e.extensions == "" {
			a.raw(string(ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame(make([]byte, 4<<20))))))
		} else {
			a.raw(string(ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame(make([]byte, 512<<10))))))
		}
		if got := a.answer(); got != "error:too_large" {
			t.Errorf("%s: told %q, want error:too_large", e.name, got)
		}
		a.say(`{"type":"ping"}`)
		a.until(t, "pong")
		_ = a.Close()
	}
	// A frame may say that it is longer than all memory.
	for _, e := range entrances[1:] {
		for range 50 {
			a := s.known(t, e, "mallory")
			a.raw("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00" + chunk[:1<<16])
			_ = a.Close()
		}
	}
}

// smallFragments cuts a message into as many frames as it has bytes, with empty ones and pings
// between: odd, and allowed.
func smallFragments(t *testing.T, s *siege) {
	const text = `{"type":"ping"}`
	for _, e := range entrances[1:] {
		a := s.known(t, e, "mallory")
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
		a.raw(b.String())
		for pongs := 0; pongs < len(text)+1; { // those of the frames, and that of the message
			e, word, err := a.read()
			if word != "" || err != nil {
				t.Errorf("told %q (%v)", word, err)
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

// overlongFragments are one message too large, a kilobyte at a time.
func (s *siege) overlongFragments(t *testing.T, e entrance) {
	t.Helper()
	a := s.known(t, e, "mallory")
	a.frame(ws.NewFrame(ws.OpText, false, nil))
	for range 500 {
		a.frame(ws.NewFrame(ws.OpContinuation, false, make([]byte, 1<<10)))
	}
	a.frame(ws.NewFrame(ws.OpContinuation, true, nil))
	if got := a.answer(); got != "error:too_large" {
		t.Errorf("%s: fragments are told %q, want error:too_large", e.name, got)
	}
	_ = a.Close()
}

// controlFrames floods the broker with frames that carry no message, before connect and after it.
// Such a connection must not go on for as long as it likes.
func controlFrames(t *testing.T, s *siege) {
	mask := func(f ws.Frame) []byte { return ws.MustCompileFrame(ws.MaskFrame(f)) }
	kinds := map[string][]byte{
		"ping":     mask(ws.NewPingFrame(bytes.Repeat([]byte("p"), 125))),
		"pong":     mask(ws.NewPongFrame(nil)),
		"fragment": mask(ws.NewFrame(ws.OpContinuation, false, nil)),
		"line":     []byte("\n"),
		"JSON":     []byte(`{"type":"pong"}` + "\n"),
	}
	for name, frame := range kinds {
		for _, e := range entrances {
			if e.frames != (name != "line" && name != "JSON") {
				continue
			}
			for _, known := range []bool{true, false} {
				if name == "JSON" && !known {
					continue // it is answered with the end of the connection
				}
				a := s.enter(t, e, "")
				if known {
					a.say(connectAs(fmt.Sprintf("flood-%d", s.comer.Add(1)), s.token("mallory")))
					a.until(t, "connected")
				}
				if name == "fragment" {
					a.frame(ws.NewFrame(ws.OpText, false, nil))
				}
				a.flood(frame)
				if got, want := a.last(), e.closing("", "overloaded", 4009); got != want {
					t.Errorf("a flood of %ss, %s, connected: %v: told %q at last, want %q", name, e.name, known, got, want)
				}
			}
		}
	}
}

// flood sends what is many times over the rates, and goes on until it is cut off.
func (a *assailant) flood(frame []byte) {
	go func() {
		for range 100 {
			a.raw(string(bytes.Repeat(frame, 500)))
		}
	}()
}

// last is the end of a verdict, without what was said of single messages.
func (a *assailant) last() string {
	words := strings.Fields(a.verdict())
	for len(words) > 0 && strings.HasPrefix(words[0], "error:rate_limited") {
		words = words[1:]
	}
	return strings.Join(words, " ")
}

// brokenFrames are what RFC 6455 forbids.
func brokenFrames(t *testing.T, s *siege) {
	mask := func(f ws.Frame) string { return string(ws.MustCompileFrame(ws.MaskFrame(f))) }
	reserved := func(f ws.Frame, rsv byte) string {
		f.Header.Rsv = rsv
		return mask(f)
	}
	text := func(fin bool) string { return mask(ws.NewFrame(ws.OpText, fin, []byte("{}"))) }
	for name, c := range map[string]struct{ bytes, want string }{
		"a control frame of 126 bytes":    {mask(ws.NewFrame(ws.OpPing, true, make([]byte, 126))), "1002"},
		"a control frame in fragments":    {mask(ws.NewFrame(ws.OpPing, false, nil)), "1002"},
		"a frame that is not masked":      {string(ws.MustCompileFrame(ws.NewTextFrame([]byte("{}")))), "1002"},
		"a continuation of nothing":       {mask(ws.NewFrame(ws.OpContinuation, true, nil)), "1002"},
		"a text within a text":            {text(false) + text(true), "1002"},
		"an unknown frame":                {mask(ws.NewFrame(3, true, nil)), "1002"},
		"an unknown control frame":        {mask(ws.NewFrame(11, true, nil)), "1002"},
		"a reserved bit":                  {reserved(ws.NewTextFrame([]byte("{}")), 0b010), "1002"},
		"a compressed control frame":      {reserved(ws.NewPingFrame(nil), 0b100), "1002"},
		"binary":                          {mask(ws.NewBinaryFrame([]byte("{}"))), "1003"},
		"a length with its first bit set": {"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", "1002"},
	} {
		for _, e := range entrances[1:] {
			a := s.known(t, e, "mallory")
			a.raw(c.bytes)
			// The library behind compression hangs up on some of these without a word.
			if got := a.verdict(); got != c.want && !(got == "" && e.extensions != "") {
				t.Errorf("%s, %s: told %q, want %q", name, e.name, got, c.want)
			}
		}
	}
	for _, e := range entrances[1:] { // a close frame that is none
		for _, body := range []string{"x", "\x03\xe7", "\x0b\xb8\xff\xfe"} {
			a := s.known(t, e, "mallory")
			a.frame(ws.NewFrame(ws.OpClose, true, []byte(body)))
			if got := a.verdict(); got == "" || strings.Contains(got, "never") {
				t.Errorf("a close frame with %q, %s: told %q", body, e.name, fmt.Sprint(got))
			}
		}
	}
}
