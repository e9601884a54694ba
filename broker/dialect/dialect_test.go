package dialect

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gobwas/ws"
)

func TestFrameViews(t *testing.T) {
	for _, n := range []int{2, 125, 126, 127, 65535, 65536, 70_000} {
		text := bytes.Repeat([]byte("x"), n)
		f := Prepare(append(ReserveHeader(nil), text...), '\n')
		clear(text)
		want := strings.Repeat("x", n)
		if string(f.Payload()) != want || string(f.Line()) != want+"\n" {
			t.Errorf("%d bytes: wrong payload or line", n)
		}
		r := bytes.NewReader(f.WebSocket())
		head, err := ws.ReadHeader(r)
		payload, _ := io.ReadAll(r)
		if err != nil || ws.CheckHeader(head, ws.StateClientSide) != nil || head.OpCode != ws.OpText ||
			!head.Fin || head.Length != int64(n) || string(payload) != want {
			t.Errorf("%d bytes: WebSocket frame %+v, %v, %d bytes after the header", n, head, err, len(payload))
		}
		if head := len(f.WebSocket()) - n; n < 126 && head != 2 || n >= 126 && n < 65536 && head != 4 || n >= 65536 && head != 10 {
			t.Errorf("%d bytes: the header has %d", n, head) // RFC 6455 §5.2: the shortest one
		}
		for _, view := range [][]byte{f.Payload(), f.Line(), f.WebSocket()} {
			_ = append(view, "overwritten"...)
		}
		if string(f.Line()) != want+"\n" {
			t.Errorf("%d bytes: appending to a view changed the frame", n)
		}
		if f.Size() < n {
			t.Errorf("%d bytes: Size is %d", n, f.Size())
		}
	}
}

func TestBatch(t *testing.T) {
	line := &Form{View: func(m *Message) []byte { return m.Prepared.Line() }}
	upper := &Form{Append: func(dst []byte, m *Message) []byte { return append(dst, bytes.ToUpper(m.Prepared.Payload())...) }}
	for n := range 4 {
		var b Batch
		var lines, uppers []byte
		for i := range n {
			text := fmt.Sprintf("message %d", i)
			m := &Message{Prepared: Prepare(append(ReserveHeader(nil), text...), '\n')}
			b.Messages = append(b.Messages, m)
			lines = append(lines, text+"\n"...)
			uppers = append(uppers, strings.ToUpper(text)...)
		}
		for range 2 {
			if !bytes.Equal(b.Bytes(line), lines) || !bytes.Equal(b.Bytes(upper), uppers) {
				t.Errorf("%d messages: joined to %q and %q", n, b.Bytes(line), b.Bytes(upper))
			}
		}
		for _, f := range []*Form{line, upper} {
			if first, again := b.Bytes(f), b.Bytes(f); n > 0 && &first[0] != &again[0] {
				t.Errorf("%d messages: encoded twice", n)
			}
		}
		b.Reset(nil)
		if len(b.Bytes(line)) > 0 {
			t.Errorf("%d messages: Reset keeps some", n)
		}
	}
}

func TestNextFrame(t *testing.T) {
	var frames []byte
	want := []string{"", "a", strings.Repeat("b", 125), strings.Repeat("c", 126), strings.Repeat("d", 70_000)}
	for i, text := range want {
		start := len(frames)
		frames = PutHeader(append(ReserveHeader(frames), text...), start, Text+Framing(i%2))
	}
	for i, text := range want {
		framing, payload, rest := NextFrame(frames)
		if string(payload) != text || framing != Text+Framing(i%2) {
			t.Fatalf("frame %d has %d bytes in framing %d, want %d", i, len(payload), framing, len(text))
		}
		frames = rest
	}
	if len(frames) > 0 {
		t.Errorf("%d bytes are left", len(frames))
	}
}
