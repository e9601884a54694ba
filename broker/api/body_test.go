package api

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"switchboard/broker/delivery"
)

// pushes are bodies of pushes. The first simplePushes of them are simple pushes.
var pushes = []string{
	`{"channel":"news","data":{"title":"hi"}}`,
	" {\n\"client\" : \"phone\" ,\t\"data\" : [1, 2 ] } \n",
	`{"user":"alice","data":null}`,
	`{"client":"phone","data":{"first":true,"notify_after":3}}`,
	`{"channel":"a}b","data":"x\"}"}`,
	`{"channel":"näws","data":1}`, // the last simple push
	`{"channel":"","data":1}`,
	`{"user":"alice","data":1,"notify_after":30}`,
	`{"user":"alice","notify_after":0.5,"first":true,"data":{"a":1}}`,
	`{"user":"alice","data":{"a":1},"first":true,"notify_after":30,"key":"k"}`,
	`{"users":["alice"],"data":1,"first":"yes"}`,
	`{"channel":"news","data":1,"ttl":5}`,
	`{"channel":"news","data":1,"data":2}`,
	`{"channel":"news","data":{"a":1},"channel":"sports"}`,
	`{"channel":"a","channel":"b"}`,
	`{"Channel":"news","data":1}`,
	`{"data":1,"channel":"news"}`,
	`{"channel":"\u006eews","data":1}`,
	`{"channel":"n` + "\xff" + `ws","data":1}`,
	`{"channel":"news","data":}`,
	`{"channel":"news","data":1`,
	`{"channel":"news","data":1}}`,
	`{"channel":"news","data":1} {}`,
	`{"channel":"news","data":1}1`,
	`{"channel":"news","set":{"a":1},"del":["b"],"add":{"n":{"by":1}},"touch":["t"],"if":{"a":0},"of":{"a":"b"},"ttl":5}`,
	`{"channel":"news","data":1,"set":{"a":1}}`,
	`{"channel":"news"}`, `{"channel":7,"data":1}`, `{"all":true,"data":1}`, `{}`, ``, `1`, `null`,
}

const simplePushes = 6

// decodeFull reads a push by package strict.
func decodeFull(text []byte) (req pushRequest, err error) { return decodePush(text) }

// comparePush fails the test if text is read as a simple push and encoding/json reads it
// differently.
func comparePush(t *testing.T, text []byte) (simple bool) {
	t.Helper()
	got, ok := parseSimplePush(text)
	if !ok {
		return false
	}
	want, err := decodeFull(text)
	if err != nil {
		t.Errorf("%q is a simple push, but encoding/json says %v", text, err)
	} else if !reflect.DeepEqual(got.request(), want) {
		t.Errorf("%q: got %+v, want %+v", text, got.request(), want)
	}
	return true
}

// request returns the same push as a pushRequest.
func (p simplePush) request() (req pushRequest) {
	switch p.kind {
	case "channel":
		req.Channel = p.name
	case "user":
		req.User = p.name
	case "client":
		req.Client = p.name
	}
	req.Data = p.data
	return req
}

func TestSimplePush(t *testing.T) {
	for i, text := range pushes {
		if simple := comparePush(t, []byte(text)); simple != (i < simplePushes) {
			t.Errorf("%q: read as a simple push: %v", text, simple)
		}
	}
}

// compareBatch fails the test if scanBatch accepts text and encoding/json reads it differently.
func compareBatch(t *testing.T, text []byte) (ok bool) {
	t.Helper()
	got, ok, _ := scanBatch(nil, text, math.MaxInt, callCounter{targets: math.MaxInt})
	if !ok {
		return false
	}
	var want struct {
		Messages []json.RawMessage `json:"messages"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&want); err != nil || d.More() {
		t.Fatalf("%q is accepted, but encoding/json says %v", text, err)
	}
	if len(got) != len(want.Messages) {
		t.Fatalf("%q: got %d messages, want %d", text, len(got), len(want.Messages))
	}
	for i := range got {
		one, err := decodePush(want.Messages[i])
		switch {
		case (got[i].err != nil) != (err != nil):
			t.Errorf("%q: message %d: %v, want %v", text, i, got[i].err, err)
		case err != nil:
		case got[i].isSimple() && !reflect.DeepEqual(got[i].request(), one), !got[i].isSimple() && !reflect.DeepEqual(*got[i].full, one):
			t.Errorf("%q: message %d is %+v, want %+v", text, i, got[i], one)
		}
	}
	return true
}

func TestScanBatch(t *testing.T) {
	for text, want := range map[string]bool{
		`{"messages":[{"channel":"news","data":1}]}`:                         true,
		" { \"messages\" : [ {\"a\":\"}\\\"\"} ,\n{\"b\":{\"c\":[{}]}} ] } ": true,
		`{"messages":[{},{}]}`:                                               true,
		`{"messages":[]}`:                                                    false,
		`{"messages":[1]}`:                                                   false,
		`{"messages":[{},]}`:                                                 false,
		`{"messages":[{}],"more":1}`:                                         false,
		`{"messages":[{}]}}`:                                                 false,
		`{"messages":[{}]`:                                                   false,
		`{"messages":[{"a":]}]}`:                                             false,
		`{"messages":[{"a":1}{"b":2}]`:                                       false,
		`{"Messages":[{}]}`:                                                  false,
		``:                                                                   false,
	} {
		if got := compareBatch(t, []byte(text)); got != want {
			t.Errorf("%q: accepted: %v", text, got)
		}
	}
}

// TestBatchBuffersAreCleared checks that a batch finds no data of the batch before it.
func TestBatchBuffersAreCleared(t *testing.T) {
	s := new(batchBuffers)
	for _, n := range []int{3, 2, 5, 1} {
		requests := append(s.requests[:0], make([]batchItem, n)...)
		s.grow(requests)
		if len(s.pushes) != 0 || cap(s.pushes) < n || len(s.answers) != n || len(s.simpleResults) != n {
			t.Fatalf("room for %d of %d pushes, %d answers, %d results", cap(s.pushes), n, len(s.answers), len(s.simpleResults))
		}
		for i := range n {
			if s.answers[i].Results != nil || s.answers[i].Error != nil || !reflect.DeepEqual(s.simpleResults[i], result{}) {
				t.Fatalf("answer %d of %d: %+v, %+v", i, n, s.answers[i], s.simpleResults[i])
			}
			requests[i].name = "news"
			s.answers[i] = pushResponse{s.simpleResults[i : i+1], new(errorBody)}
			s.simpleResults[i].Channel = "news"
			_ = append(s.pushes[:i], delivery.Push{Name: "news"})
		}
		s.free()
		for i := range n {
			if !reflect.DeepEqual(s.requests[i], batchItem{}) || !reflect.DeepEqual(s.pushes[:n][i], delivery.Push{}) {
				t.Fatalf("request %d of %d is not cleared: %+v, %+v", i, n, s.requests[i], s.pushes[:n][i])
			}
		}
	}
}

func FuzzSimplePush(f *testing.F) {
	for _, text := range pushes {
		f.Add([]byte(text))
		f.Add([]byte(`{"messages":[` + text + `,` + text + `]}`))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		comparePush(t, text)
		compareBatch(t, text)
	})
}

func BenchmarkReadPush(b *testing.B) {
	text := []byte(`{"channel":"news","data":{"n":1,"text":"` + strings.Repeat("x", 70) + `"}}`)
	b.Run("simple", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := parseSimplePush(text); !ok {
				b.Fatal("not a simple push")
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
