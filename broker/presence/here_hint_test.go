package presence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"switchboard/broker/peer"
)

// TestHereHints checks that all values of a channel fit into hints that a link sends with their
// data.
func TestHereHints(t *testing.T) {
	var values []*hereValue
	for i := range 200 {
		values = append(values, &hereValue{client: fmt.Sprint("user/client-", i), generation: int64(i), number: 1 << 50, data: bytes.Repeat([]byte("1"), MaxHere)})
	}
	values[7].data = nil
	n := 0
	for _, body := range encodeHere(values) {
		if len(body) > 64<<10 {
			t.Errorf("a hint has %d bytes; the links send at most 64 KiB", len(body))
		}
		for len(body) > 0 {
			got, rest, ok := decodeHere(body)
			want := values[n]
			if !ok || string(got.client) != want.client || got.generation != want.generation || got.number != want.number || !bytes.Equal(got.data, want.data) {
				t.Fatalf("value %d is %+v, want %+v", n, got, want)
			}
			body, n = rest, n+1
		}
	}
	if n != len(values) {
		t.Errorf("%d values, want %d", n, len(values))
	}
}

// FuzzReceiveHere checks that any hint is accepted or ignored, and that a hint with the values of a
// decoded one decodes to the same values.
func FuzzReceiveHere(f *testing.F) {
	f.Add(encodeHere([]*hereValue{{client: "phone", generation: 1, number: 2, data: []byte("1")}, {client: "pad", generation: 3}})[0])
	f.Add(binary.AppendUvarint(nil, 1<<63))
	f.Add([]byte{1, 'a', 0x80})
	f.Fuzz(func(t *testing.T, body []byte) {
		p := New(Options{ServerID: func() string { return "a" }})
		p.receiveHere(peer.Hint{Kind: peer.Here, Name: "room", Data: body})
		for len(body) > 0 {
			v, rest, ok := decodeHere(body)
			if !ok {
				break
			}
			again := encodeHere([]*hereValue{{client: string(v.client), generation: v.generation, number: v.number, data: v.data}})[0]
			if w, _, ok := decodeHere(again); !ok || !bytes.Equal(w.client, v.client) || w.generation != v.generation || w.number != v.number || !bytes.Equal(w.data, v.data) {
				t.Fatalf("%+v, want %+v", w, v)
			}
			body = rest
		}
	})
}
