//go:build long

package rooms

import (
	"encoding/hex"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// TestMoves reads changes in both protocols.
func TestMoves(t *testing.T) {
	unhex := func(text string) []byte {
		b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	colyseus, switchboard := &colyseusProtocol{}, &switchboardProtocol{}
	for _, test := range []struct {
		name     string
		protocol protocol
		body     []byte
		want     []position
		fails    bool
	}{
		{"one change", colyseus, unhex("0f ff02 8041000000 8101000000"), []position{{65, 1}}, false},
		{"two changes", colyseus, unhex("0f ff03 8042000000 8101000000 ffcc80 0041000000 0101000000"), []position{{66, 1}, {65, 1}}, false},
		{"a player joins", colyseus, unhex("0f ff01 8001a9364d794d796f5a73697203"), nil, false},
		{"the first player joins", colyseus, unhex("0f 8001 ff01 8000a9626149496e4939385302"), nil, false},
		{"half a change", colyseus, unhex("0f ff02 8041000000 81"), nil, true},
		{"one coordinate", colyseus, unhex("0f ff02 8041000000 8041000000"), nil, true},
		{"an error", colyseus, unhex("0b 01"), nil, true},
		{"one field", switchboard, []byte(`{"type":"message","channel":"room:r1","id":7,"set":{"p/2/pos":{"x":66,"y":1}},"by":"2"}`), []position{{66, 1}}, false},
		{"two fields", switchboard, []byte(`{"type":"message","id":7,"set":{"p/2/pos":{"x":66,"y":1},"p/1/pos":{"x":65,"y":1}}}`), []position{{66, 1}, {65, 1}}, false},
		{"a member", switchboard, []byte(`{"type":"message","channel":"room:r1","id":7,"set":{"member/2":{"nickname":""}}}`), nil, false},
		{"published", switchboard, []byte(`{"type":"published","channel":"room:r1","id":7}`), nil, false},
		{"a refusal", switchboard, []byte(`{"type":"error","code":"forbidden"}`), nil, true},
		{"a gap", switchboard, []byte(`{"type":"gap","channel":"room:r1"}`), nil, true},
		{"half a position", switchboard, []byte(`{"type":"message","set":{"p/2/pos":{"x":66}}}`), nil, true},
	} {
		var got []position
		err := test.protocol.moves(test.body, func(p position) error {
			got = append(got, p)
			return nil
		})
		if !slices.Equal(got, test.want) || (err != nil) != test.fails {
			t.Errorf("%s: moves are %v, %v; want %v", test.name, got, err, test.want)
		}
	}
}

// TestDeliver detects lost, repeated and strange changes.
func TestDeliver(t *testing.T) {
	m := &member{room: &room{}, number: 1, seen: make([]int32, 5)}
	for _, test := range []struct {
		p     position
		fails bool
	}{
		{positionOf(2, 1), false},
		{positionOf(4, 1), false},
		{positionOf(2, 2), false},
		{positionOf(2, 2), true}, // again
		{positionOf(4, 3), true}, // the second is lost
		{positionOf(5, 1), true}, // of no member
		{position{positionOf(3, 1).x, 2}, true},
	} {
		if err := m.deliver(test.p); (err != nil) != test.fails {
			t.Errorf("deliver(%v) = %v", test.p, err)
		}
	}
	if n := m.delivered.Load(); n != 3 {
		t.Errorf("%d changes were delivered, want 3", n)
	}
}

// TestSocket sends frames with short and long bodies.
func TestSocket(t *testing.T) {
	for _, size := range []int{0, 1, 125, 126, 4000} {
		client, server := net.Pipe()
		s := &socket{conn: client}
		body := []byte(strings.Repeat("x", size))
		sent := make(chan error, 1)
		go func() {
			sent <- s.send(opText, body)
			_ = client.Close()
		}()
		frame, err := io.ReadAll(server)
		if err != nil || <-sent != nil {
			t.Fatal(err)
		}
		head := []byte{0x81, 0x80 | byte(size), 0, 0, 0, 0}
		if size >= 126 {
			head = []byte{0x81, 0x80 | 126, byte(size >> 8), byte(size), 0, 0, 0, 0}
		}
		if want := append(head, body...); !slices.Equal(frame, want) {
			t.Errorf("%d bytes: the frame begins with %x, want %x", size, frame[:min(8, len(frame))], want[:min(8, len(want))])
		}
	}
}
