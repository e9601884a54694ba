package api

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"switchboard/internal/payload"
)

// scanned are pushes that scanPush reads.
var scanned = []string{
	`{"channel":"news","set":{"a":1}}`,
	" {\n\"set\" : { \"a\" : [1, 2 ] ,\"b\":null} ,\t\"channel\" : \"news\" , \"data\" : { } } \n",
	`{"channel":"news","data":1,"set":{"a":"x\"}"},"del":["b","c"],"add":{"n":{"by":1}},"touch":["t"],"if":{"a":0,"b":true},"ttl":5,"own":false}`,
	`{"channel":"news","add":{"n":-3},"key":"k","durable":true,"ttl":0.5e-3}`,
	`{"channel":"news","del":[""],"set":{"":1,"é":2}}`,
	`{"user":"alice","data":1,"ttl":60,"key":"k"}`,
	`{"client":"","data":1}`,
	`{"data":1}`,
}

// notScanned are texts that scanPush leaves to encoding/json.
var notScanned = []string{
	`{"channel":"news","set":{}}`, `{"channel":"news","del":[]}`, `{"channel":"news","set":null}`, `{"channel":"news","own":null}`,
	`{"channel":"news","set":{"a":1,"a":2}}`, `{"channel":"news","set":{"\u0061":1}}`, `{"channel":"news","Set":{"a":1}}`,
	`{"channel":"news","set":{"a":1},"of":{"a":"b"}}`, `{"channel":"news","set":[1]}`, `{"channel":"news","del":["a",]}`,
	`{"channel":"news","set":{"a":1,}}`, `{"channel":"news","set":{"a":01}}`, `{"channel":"news","set":{"a":}}`, `{"channel":"news","del":[1]}`,
	`{"channel":"news","ttl":"5"}`, `{"channel":"news","ttl":1e400}`, `{"channel":"news","ttl":NaN}`, `{"channel":"news","ttl":0x1p3}`,
	`{"channel":"news","set":{"a":1},"set":{"b":2},"del":["x","y"],"del":["z"],"own":true,"own":false,"ttl":1,"ttl":2}`,
	`{"channel":"news","own":1}`, `{"channel":"news","durable":"true"}`, `{"channel":"news","key":null}`,
	`{"channel":"news","set":{"a":1}`, `{"channel":"news","set":{"a":1}}}`, `{"channel":"news","set":{"a":1}} {}`,
	`{"channel":"news","set":{"a` + "\xff" + `":1}}`, `{"channel":"news","set":{"a":"` + "\xff" + `"}}`, `{}`, ``, `null`,
	`{"channel":"news","set":{"a":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}}`,
	`{"channel":"news","del":["x"` + strings.Repeat(`,"x"`, 64) + `]}`,
}

// compareScan fails the test if scanPush reads text and package strict reads it differently.
func compareScan(t *testing.T, text []byte) (ok bool) {
	t.Helper()
	var got pushRequest
	if s := payload.NewScanner(text); !scanPush(&s, &got) || !s.End() {
		return false
	}
	want, err := decodeFull(text)
	if err != nil {
		t.Errorf("%q is scanned, but encoding/json says %v", text, err)
	} else if !reflect.DeepEqual(got, want) {
		t.Errorf("%q: got %+v, want %+v", text, got, want)
	}
	return true
}

func TestScanPush(t *testing.T) {
	for _, text := range scanned {
		if !compareScan(t, []byte(text)) {
			t.Errorf("%q is left to encoding/json", text)
		}
	}
	for _, text := range notScanned {
		if compareScan(t, []byte(text)) {
			t.Errorf("%q is scanned", text)
		}
	}
}

// TestScanLimit: 64 members of an object are scanned, 65 are not.
func TestScanLimit(t *testing.T) {
	for n, want := range map[int]bool{64: true, 64 + 1: false} {
		members := make([]string, n)
		for i := range members {
			members[i] = fmt.Sprintf(`"f%d":%d`, i, i)
		}
		if text := `{"channel":"news","set":{` + strings.Join(members, ",") + `}}`; compareScan(t, []byte(text)) != want {
			t.Errorf("%d members: scanned is not %v", n, want)
		}
	}
}

func FuzzScanPush(f *testing.F) {
	for _, list := range [][]string{scanned, notScanned, pushes} {
		for _, text := range list {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		compareScan(t, text)
		compareBatch(t, []byte(`{"messages":[`+string(text)+`]}`))
	})
}

func BenchmarkReadChange(b *testing.B) {
	text := []byte(`{"channel":"room:7","set":{"seat/7":{"n":1,"text":"` + strings.Repeat("x", 70) + `"}}}`)
	b.Run("scanned", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := readPush(body{text: text}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeFull(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
