//go:build long

package attack

import (
	"bytes"
	"compress/flate"
	"sync"
	"testing"

	"github.com/gobwas/ws"
)

// rsv1 is the header bit of a compressed message (RFC 7692 §6).
const rsv1 = 0b100

// compressedSpaces returns a deflated message of n MB of spaces. It has about 1 KB for each MB.
func compressedSpaces(t *testing.T, n int) []byte {
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
	whole := bytes.Repeat(b.Bytes(), n) // no block refers to the one before
	return bytes.TrimSuffix(whole, []byte{0, 0, 0xff, 0xff})
}

// compressedBombs sends many messages in parallel that inflate to 512 MB each, half of them in
// fragments.
func compressedBombs(t *testing.T, s *scenario) {
	const attackers = 10
	bomb := compressedSpaces(t, 512)
	var sending sync.WaitGroup
	for i := range attackers {
		for _, anonymous := range []bool{true, false} {
			var a *attacker
			if anonymous {
				a = s.open(t, compressed, "")
			} else {
				a = s.connectUser(t, compressed, "mallory")
			}
			outcome := make(chan string, 1)
			go func() { outcome <- a.outcome() }()
			sending.Go(func() {
				if i%2 == 0 {
					a.sendCompressed(ws.OpText, true, bomb)
				} else {
					for k := 0; k < len(bomb); k += 4 << 10 {
						op := ws.OpContinuation
						if k == 0 {
							op = ws.OpText
						}
						a.sendCompressed(op, k+4<<10 >= len(bomb), bomb[k:min(k+4<<10, len(bomb))])
					}
				}
				if got := <-outcome; got != "1009" {
					t.Errorf("got %q, want 1009", got)
				}
			})
		}
	}
	sending.Wait()
	s.smallBombs(t)
}

// smallBombs sends a message that inflates to slightly more than the limit. The broker must skip it
// like an uncompressed one. Then smallBombs sends a message that is not deflated. It must end the
// connection.
func (s *scenario) smallBombs(t *testing.T) {
	t.Helper()
	a := s.connectUser(t, compressed, "mallory")
	a.sendCompressed(ws.OpText, true, compressedSpaces(t, 1))
	if got := a.reply(); got != "error:too_large" {
		t.Errorf("1 MB: got %q, want error:too_large", got)
	}
	a.send(`{"type":"ping"}`)
	a.waitFor(t, "pong")
	a.sendCompressed(ws.OpText, true, []byte("\xff\xff\xff\xff no deflated text"))
	if got := a.outcome(); got != "" && got != "1007" && got != "1002" {
		t.Errorf("invalid deflate data: got %q", got)
	}
}

// sendCompressed sends a frame of a compressed message.
func (a *attacker) sendCompressed(op ws.OpCode, fin bool, payload []byte) {
	f := ws.NewFrame(op, fin, payload)
	if op != ws.OpContinuation {
		f.Header.Rsv = rsv1
	}
	a.sendFrame(f)
}

// unnegotiatedCompression sends compressed messages on connections without negotiated compression.
func unnegotiatedCompression(t *testing.T, s *scenario) {
	bomb := compressedSpaces(t, 64)
	for _, e := range uncompressed {
		a := s.connectUser(t, e, "mallory")
		a.sendCompressed(ws.OpText, true, bomb)
		if got := a.outcome(); got != "1002" {
			t.Errorf("%s: got %q, want 1002", e.name, got)
		}
	}
}
