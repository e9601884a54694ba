package attack

import (
	"bytes"
	"compress/flate"
	"sync"
	"testing"

	"github.com/gobwas/ws"
)

// rsv1 is the bit of a compressed message (RFC 7692 §6).
const rsv1 = 0b100

// inflating is what becomes n MB of white space when it is inflated: some 1 KB for each.
func inflating(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err == nil {
		_, err = w.Write(bytes.Repeat([]byte(" "), 1<<20))
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.Repeat(b.Bytes(), n) // no block looks back at the one before
	return bytes.TrimSuffix(whole, []byte{0, 0, 0xff, 0xff})
}

// compressedBombs inflate to half a gigabyte each, many at once, in one frame and in fragments.
func compressedBombs(t *testing.T, s *siege) {
	const attackers = 10
	bomb := inflating(t, 512)
	var begun sync.WaitGroup
	for i := range attackers {
		for _, stranger := range []bool{true, false} {
			var a *assailant
			if stranger {
				a = s.enter(t, entrances[3], "")
			} else {
				a = s.known(t, entrances[3], "mallory")
			}
			verdict := make(chan string, 1)
			go func() { verdict <- a.verdict() }()
			begun.Go(func() {
				if i%2 == 0 {
					a.compressed(ws.OpText, true, bomb)
				} else {
					for k := 0; k < len(bomb); k += 4 << 10 {
						op := ws.OpContinuation
						if k == 0 {
							op = ws.OpText
						}
						a.compressed(op, k+4<<10 >= len(bomb), bomb[k:min(k+4<<10, len(bomb))])
					}
				}
				if got := <-verdict; got != "1009" {
					t.Errorf("told %q, want 1009", got)
				}
			})
		}
	}
	begun.Wait()
	s.smallBombs(t)
}

// smallBombs inflate to somewhat more than allowed: they are skipped, as if they had come as they are; and what is no
// deflated text at all ends the connection.
func (s *siege) smallBombs(t *testing.T) {
	t.Helper()
	a := s.known(t, entrances[3], "mallory")
	a.compressed(ws.OpText, true, inflating(t, 1))
	if got := a.answer(); got != "error:too_large" {
		t.Errorf("a megabyte is told %q, want error:too_large", got)
	}
	a.say(`{"type":"ping"}`)
	a.until(t, "pong")
	a.compressed(ws.OpText, true, []byte("\xff\xff\xff\xff no deflated text"))
	if got := a.verdict(); got != "" && got != "1007" && got != "1002" {
		t.Errorf("what cannot be inflated is told %q", got)
	}
}

func (a *assailant) compressed(op ws.OpCode, fin bool, payload []byte) {
	f := ws.NewFrame(op, fin, payload)
	if op != ws.OpContinuation {
		f.Header.Rsv = rsv1
	}
	a.frame(f)
}

// compressedUnasked sends compressed messages where that was not agreed on.
func compressedUnasked(t *testing.T, s *siege) {
	bomb := inflating(t, 64)
	for _, e := range entrances[1:3] {
		a := s.known(t, e, "mallory")
		a.compressed(ws.OpText, true, bomb)
		if got := a.verdict(); got != "1002" {
			t.Errorf("%s: told %q, want 1002", e.name, got)
		}
	}
}
