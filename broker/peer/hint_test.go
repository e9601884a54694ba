package peer

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestBatchRoundTrip(t *testing.T) {
	hints := []Hint{
		{Kind: Channel, Name: "room", ID: 1 << 52, Prev: 1<<52 - 7, Data: []byte(`{"a":1}`)},
		{Kind: Client, Name: "c", ID: 5},
		{Kind: Supersede, Name: strings.Repeat("n", maxName), ID: math.MaxInt64, Prev: math.MinInt64},
		{Kind: 200, ID: math.MinInt64, Prev: math.MaxInt64, Data: make([]byte, maxData)},
	}
	end := ending{goodbye: true}
	b, n := appendBatch(nil, 42, hints, end)
	if n != len(hints) {
		t.Fatalf("%d of %d encoded", n, len(hints))
	}
	number, got, back, err := decodeBatch(b, nil, supported)
	if err != nil || number != 42 || back != end || !reflect.DeepEqual(got, hints) {
		t.Fatalf("got %d, %v", number, err)
	}
	clear(b)
	if string(got[0].Data) != `{"a":1}` {
		t.Error("the data shares memory with the buffer, which is reused")
	}
}

func TestBatchSize(t *testing.T) {
	hints := make([]Hint, 100)
	for i := range hints {
		hints[i] = Hint{Kind: Channel, Name: "room", ID: int64(i), Data: make([]byte, 1000)}
	}
	b, n := appendBatch(nil, 0, hints, ending{})
	if n < 64 || n > 66 {
		t.Errorf("%d hints of 1 kB in a batch", n)
	}
	if big, _ := appendBatch(nil, 0, append(hints[:n-1:n-1], Hint{Name: strings.Repeat("n", maxName), Data: make([]byte, maxData)}), ending{}); len(big) > maxMessage {
		t.Errorf("a batch of %d bytes, after %d", len(big), len(b))
	}
}

func TestDecodeMalformed(t *testing.T) {
	whole, _ := appendBatch(nil, 300, []Hint{{Kind: Channel, Name: "room", ID: 9000, Prev: 1, Data: []byte("data")}}, ending{})
	for end := range whole {
		if _, _, _, err := decodeBatch(whole[:end], nil, 0); !errors.Is(err, errMalformed) && end != 2 { // 2: only the number
			t.Errorf("%d of %d bytes: %v", end, len(whole), err)
		}
	}
	for name, hint := range map[string]Hint{
		"kind 0":    {Name: "room"},
		"long name": {Kind: Channel, Name: strings.Repeat("n", maxName+1)},
		"long data": {Kind: Channel, Name: "room", Data: make([]byte, maxData+1)},
	} {
		b, _ := appendBatch(nil, 0, []Hint{hint}, ending{})
		if _, _, _, err := decodeBatch(b, nil, supported); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string][]byte{
		"no flags":                      {0, 0},
		"zero flags":                    {0, 0, 0},
		"an unknown flag":               {0, 0, 2},
		"an unknown flag and a goodbye": {0, 0, 2 | flagGoodbye},
		"an unknown flag with a number": {0, 0, 2, 7},
		"the highest flag":              {0, 0, 128},
		"more after the ending":         {0, 0, flagGoodbye, 1},
	} {
		if _, _, _, err := decodeBatch(b, nil, supported); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, _, err := decodeBatch([]byte{0, 0, flagGoodbye}, nil, 0); !errors.Is(err, errMalformed) {
		t.Errorf("an ending on a link without features: %v", err)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	b, _ := appendBatch(nil, 300, []Hint{{Channel, "room", 9000, 1, []byte("data")}, {Client, "c", -1, 1, nil}}, ending{goodbye: true})
	f.Add(b)
	f.Add([]byte{})
	f.Add([]byte{0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		number, hints, end, err := decodeBatch(b, nil, supported)
		if err != nil {
			return
		}
		var again []Hint
		for rest := hints; len(rest) > 0; {
			part, n := appendBatch(nil, number, rest, end)
			back, more, sameEnd, err := decodeBatch(part, nil, supported)
			if err != nil || back != number || (sameEnd == end) != (n == len(rest) || end == (ending{})) {
				t.Fatalf("%d with %+v, not %d with %+v: %v", back, sameEnd, number, end, err)
			}
			again, rest = append(again, more...), rest[n:]
		}
		if !reflect.DeepEqual(again, hints) {
			t.Fatalf("%v became %v", hints, again)
		}
	})
}
