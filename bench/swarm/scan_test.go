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
		next func([]byte) (Unit, int, error)
		in   string
		want []Unit
		rest int
		err  error
	}{
		{name: "lines", next: CutLine, in: "a\n\nbc\n", want: []Unit{{OpText, []byte("a")}, {OpText, nil}, {OpText, []byte("bc")}}},
		{name: "half a line", next: CutLine, in: "a\nbc", want: []Unit{{OpText, []byte("a")}}, rest: 2},
		{name: "endless line", next: CutLine, in: strings.Repeat("x", maxMessage+1), err: errLong, rest: maxMessage + 1},
		{
			name: "frames of each length", next: CutFrame, in: framed("a") + framed(long) + framed(longer),
			want: []Unit{{OpText, []byte("a")}, {OpText, []byte(long)}, {OpText, []byte(longer)}},
		},
		{name: "ping and close", next: CutFrame, in: "\x89\x01z\x88\x00", want: []Unit{{opPing, []byte("z")}, {opClose, nil}}},
		{name: "half a header", next: CutFrame, in: framed(long)[:3], rest: 3},
		{name: "half a body", next: CutFrame, in: framed(long)[:100], rest: 100},
		{name: "fragment", next: CutFrame, in: "\x01\x01a", err: errFragmented, rest: 3},
		{name: "continuation", next: CutFrame, in: "\x80\x01a", err: errFragmented, rest: 3},
		{name: "masked", next: CutFrame, in: "\x81\x81abcde", err: errMasked, rest: 7},
		{name: "huge", next: CutFrame, in: "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", err: errLong, rest: 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, rest, err := all(tc.next, []byte(tc.in))
			if !errors.Is(err, tc.err) || len(rest) != tc.rest {
				t.Errorf("got error %v and %d bytes left, want %v and %d", err, len(rest), tc.err, tc.rest)
			}
			if !same(got, tc.want) {
				t.Errorf("got %.80q, want %.80q", got, tc.want)
			}
		})
	}
	if _, _, err := CutFrame([]byte("\xc1\x00")); err == nil {
		t.Error("reserved bits were let through")
	}
}

// all takes units until one is incomplete or wrong.
func all(next func([]byte) (Unit, int, error), data []byte) (units []Unit, rest []byte, err error) {
	for {
		u, n, err := next(data)
		if n == 0 || err != nil {
			return units, data, err
		}
		units = append(units, Unit{u.Op, bytes.Clone(u.Body)})
		data = data[n:]
	}
}

func same(a, b []Unit) bool {
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

// FuzzNext gives the scanners any bytes, whole and in two pieces: what they find must not depend on
// where the network cut, and every piece must be the buffer's.
func FuzzNext(f *testing.F) {
	f.Add([]byte("{}\n{\"type\":\"ping\"}\nx"), 4, false)
	f.Add(append(frameOf([]byte(`{"a":1}`)), 0x89, 0, 0x88, 2, 3, 232), 5, true)
	f.Add(frameOf(bytes.Repeat([]byte("x"), 200)), 3, true)
	f.Fuzz(func(t *testing.T, data []byte, cut int, frames bool) {
		next := CutLine
		if frames {
			next = CutFrame
		}
		whole, wholeRest, wholeErr := all(next, data)
		cut = min(max(cut, 0), len(data))
		pieces, rest, err := all(next, data[:cut])
		if err == nil {
			var more []Unit
			more, rest, err = all(next, append(bytes.Clone(rest), data[cut:]...))
			pieces = append(pieces, more...)
			if (err == nil) != (wholeErr == nil) || !bytes.Equal(rest, wholeRest) || !same(pieces, whole) {
				t.Fatalf("cut at %d: %q rest %q, %v; whole: %q rest %q, %v", cut, pieces, rest, err, whole, wholeRest, wholeErr)
			}
		} else if wholeErr == nil {
			t.Fatalf("cut at %d: %v, and whole it is fine", cut, err)
		}
	})
}

// frameOf returns a text frame from a server.
func frameOf(payload []byte) []byte {
	return dialect.Sealed(append(dialect.Pack(nil), payload...), '\n').WebSocket()
}

// message returns a message of the channel news as the broker sends it.
func message(id int64, data string) dialect.Packed {
	return native.New(0).Message("news", id, []byte(data)).Packed
}
