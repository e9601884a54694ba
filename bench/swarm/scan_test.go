package swarm

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"switchboard/internal/wire"
)

func TestNext(t *testing.T) {
	long := strings.Repeat("x", 300)
	longer := strings.Repeat("y", 70_000)
	framed := func(s string) string { return string(wire.NewFrame([]byte(s)).WebSocket()) }
	for _, tc := range []struct {
		name string
		next func([]byte) (unit, int, error)
		in   string
		want []unit
		rest int
		err  error
	}{
		{name: "lines", next: nextLine, in: "a\n\nbc\n", want: []unit{{opText, []byte("a")}, {opText, nil}, {opText, []byte("bc")}}},
		{name: "half a line", next: nextLine, in: "a\nbc", want: []unit{{opText, []byte("a")}}, rest: 2},
		{name: "endless line", next: nextLine, in: strings.Repeat("x", maxMessage+1), err: errLong, rest: maxMessage + 1},
		{
			name: "frames of each length", next: nextFrame, in: framed("a") + framed(long) + framed(longer),
			want: []unit{{opText, []byte("a")}, {opText, []byte(long)}, {opText, []byte(longer)}},
		},
		{name: "ping and close", next: nextFrame, in: "\x89\x01z\x88\x00", want: []unit{{opPing, []byte("z")}, {opClose, nil}}},
		{name: "half a header", next: nextFrame, in: framed(long)[:3], rest: 3},
		{name: "half a body", next: nextFrame, in: framed(long)[:100], rest: 100},
		{name: "fragment", next: nextFrame, in: "\x01\x01a", err: errFragmented, rest: 3},
		{name: "continuation", next: nextFrame, in: "\x80\x01a", err: errFragmented, rest: 3},
		{name: "masked", next: nextFrame, in: "\x81\x81abcde", err: errMasked, rest: 7},
		{name: "huge", next: nextFrame, in: "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", err: errLong, rest: 10},
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
	if _, _, err := nextFrame([]byte("\xc1\x00")); err == nil {
		t.Error("reserved bits were let through")
	}
}

// all takes units until one is incomplete or wrong.
func all(next func([]byte) (unit, int, error), data []byte) (units []unit, rest []byte, err error) {
	for {
		u, n, err := next(data)
		if n == 0 || err != nil {
			return units, data, err
		}
		units = append(units, unit{u.op, bytes.Clone(u.body)})
		data = data[n:]
	}
}

func same(a, b []unit) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].op != b[i].op || !bytes.Equal(a[i].body, b[i].body) {
			return false
		}
	}
	return true
}

func TestMessageID(t *testing.T) {
	head, tail := []byte(`{"channel":"c","id":`), []byte(`,"data":1}`)
	for in, want := range map[string]int64{
		`{"channel":"c","id":735325130218701,"data":1}`:     735325130218701,
		`{"channel":"c","id":0,"data":1}`:                   0,
		`{"channel":"c","id":,"data":1}`:                    -1,
		`{"channel":"c","id":5,"data":2}`:                   -1,
		`{"channel":"c","id":5,"data":1} `:                  -1,
		`{"channel":"d","id":5,"data":1}`:                   -1,
		`{"channel":"c","id":-5,"data":1}`:                  -1,
		`{"channel":"c","id":9999999999999999999,"data":1}`: -1,
	} {
		id, ok := messageID([]byte(in), head, tail)
		if ok != (want >= 0) || ok && id != want {
			t.Errorf("%s: got %d, %v, want %d", in, id, ok, want)
		}
	}
}

// FuzzNext gives the scanners any bytes, whole and in two pieces: what they find must not depend on
// where the network cut, and every piece must be the buffer's.
func FuzzNext(f *testing.F) {
	f.Add([]byte("{}\n{\"type\":\"ping\"}\nx"), 4, false)
	f.Add(append(wire.NewFrame([]byte(`{"a":1}`)).WebSocket(), 0x89, 0, 0x88, 2, 3, 232), 5, true)
	f.Add(wire.NewFrame(bytes.Repeat([]byte("x"), 200)).WebSocket(), 3, true)
	f.Fuzz(func(t *testing.T, data []byte, cut int, frames bool) {
		next := nextLine
		if frames {
			next = nextFrame
		}
		whole, wholeRest, wholeErr := all(next, data)
		cut = min(max(cut, 0), len(data))
		pieces, rest, err := all(next, data[:cut])
		if err == nil {
			var more []unit
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
