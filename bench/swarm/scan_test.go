package swarm

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/broker/dialect/native"
)

func TestNext(t *testing.T) {
	long := strings.Repeat("x", 300)
	longer := strings.Repeat("y", 70_000)
	framed := func(s string) string { return string(frameOf([]byte(s))) }
	for _, tc := range []struct {
		name string
		next func([]byte) (Frame, int, error)
		in   string
		want []Frame
		rest int
		err  error
	}{
		{name: "lines", next: NextLine, in: "a\n\nbc\n", want: []Frame{{OpText, []byte("a")}, {OpText, nil}, {OpText, []byte("bc")}}},
		{name: "half a line", next: NextLine, in: "a\nbc", want: []Frame{{OpText, []byte("a")}}, rest: 2},
		{name: "endless line", next: NextLine, in: strings.Repeat("x", maxMessage+1), err: errTooLong, rest: maxMessage + 1},
		{
			name: "frames of each length", next: NextWebSocket, in: framed("a") + framed(long) + framed(longer),
			want: []Frame{{OpText, []byte("a")}, {OpText, []byte(long)}, {OpText, []byte(longer)}},
		},
		{name: "ping and close", next: NextWebSocket, in: "\x89\x01z\x88\x00", want: []Frame{{opPing, []byte("z")}, {opClose, nil}}},
		{name: "half a header", next: NextWebSocket, in: framed(long)[:3], rest: 3},
		{name: "half a body", next: NextWebSocket, in: framed(long)[:100], rest: 100},
		{name: "fragment", next: NextWebSocket, in: "\x01\x01a", err: errFragmented, rest: 3},
		{name: "continuation", next: NextWebSocket, in: "\x80\x01a", err: errFragmented, rest: 3},
		{name: "masked", next: NextWebSocket, in: "\x81\x81abcde", err: errMasked, rest: 7},
		{name: "huge", next: NextWebSocket, in: "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", err: errTooLong, rest: 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, rest, err := nextAll(tc.next, []byte(tc.in))
			if !errors.Is(err, tc.err) || len(rest) != tc.rest {
				t.Errorf("got error %v and %d bytes left, want %v and %d", err, len(rest), tc.err, tc.rest)
			}
			if !equalFrames(got, tc.want) {
				t.Errorf("got %.80q, want %.80q", got, tc.want)
			}
		})
	}
	if _, _, err := NextWebSocket([]byte("\xc1\x00")); err == nil {
		t.Error("reserved bits were accepted")
	}
}

// nextAll returns all frames until one is incomplete or wrong.
func nextAll(next func([]byte) (Frame, int, error), data []byte) (frames []Frame, rest []byte, err error) {
	for {
		f, n, err := next(data)
		if n == 0 || err != nil {
			return frames, data, err
		}
		frames = append(frames, Frame{f.Op, bytes.Clone(f.Body)})
		data = data[n:]
	}
}

func equalFrames(a, b []Frame) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Op != b[i].Op || !bytes.Equal(a[i].Body, b[i].Body) {
			return false
		}
	}
	return true
}

// FuzzNext passes any bytes to the scanners, whole and in two parts. The frames must not depend on
// where the bytes are split, and each must be part of the buffer.
func FuzzNext(f *testing.F) {
	f.Add([]byte("{}\n{\"type\":\"ping\"}\nx"), 4, false)
	f.Add(append(frameOf([]byte(`{"a":1}`)), 0x89, 0, 0x88, 2, 3, 232), 5, true)
	f.Add(frameOf(bytes.Repeat([]byte("x"), 200)), 3, true)
	f.Fuzz(func(t *testing.T, data []byte, cut int, frames bool) {
		next := NextLine
		if frames {
			next = NextWebSocket
		}
		whole, wholeRest, wholeErr := nextAll(next, data)
		cut = min(max(cut, 0), len(data))
		pieces, rest, err := nextAll(next, data[:cut])
		if err == nil {
			var more []Frame
			more, rest, err = nextAll(next, append(bytes.Clone(rest), data[cut:]...))
			pieces = append(pieces, more...)
			if (err == nil) != (wholeErr == nil) || !bytes.Equal(rest, wholeRest) || !equalFrames(pieces, whole) {
				t.Fatalf("cut at %d: %q rest %q, %v; whole: %q rest %q, %v", cut, pieces, rest, err, whole, wholeRest, wholeErr)
			}
		} else if wholeErr == nil {
			t.Fatalf("cut at %d: %v, but whole it is valid", cut, err)
		}
	})
}

// frameOf returns a text frame from a server.
func frameOf(payload []byte) []byte {
	return dialect.Prepare(append(dialect.ReserveHeader(nil), payload...), '\n').WebSocket()
}

// message returns a message of the channel news as the broker sends it.
func message(id int64, data string) dialect.Prepared {
	return native.New(0).Message("news", id, []byte(data)).Prepared
}
