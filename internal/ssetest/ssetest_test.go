package ssetest

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// readAll returns all events and comments of a stream, and the result of the last call of Next.
func readAll(r *Reader) (events []Event, rest Event) {
	for {
		e, err := r.Next()
		if err != nil {
			return events, e
		}
		events = append(events, e)
	}
}

func TestReader(t *testing.T) {
	for name, test := range map[string]struct {
		in   string
		want []Event // without Raw
		rest string
	}{
		"all fields": {
			in:   "retry: 1500\nid: 1\nevent: join\ndata: a\ndata:b\n\n",
			want: []Event{{ID: "1", Name: "join", Data: "a\nb", Retry: 1500}},
		},
		"the id stays": {
			in:   "id:1\ndata:a\n\ndata:b\n\nid\ndata:c\n\n",
			want: []Event{{ID: "1", Name: "message", Data: "a"}, {ID: "1", Name: "message", Data: "b"}, {Name: "message", Data: "c"}},
		},
		"lines in CR LF": {in: "id:1\r\ndata:a\r\n\r\n", want: []Event{{ID: "1", Name: "message", Data: "a"}}},
		"comments":       {in: ":\n\n:x\ndata:a\n\n", want: []Event{{Name: "message", Comment: true}, {Name: "message", Data: "a"}}},
		"empty data":     {in: "data\n\n", want: []Event{{Name: "message"}}},
		"an event without data counts for its id only": {
			in: "id:1\nevent:x\n\nevent:\ndata:a\n\n", want: []Event{{ID: "1", Name: "message", Data: "a"}},
		},
		"no empty line": {in: "data:a\n\nid:2\ndata:b\n", want: []Event{{Name: "message", Data: "a"}}, rest: "id:2\ndata:b\n"},
		"half a line":   {in: "data:a", rest: "data:a"},
		"values that are ignored": {
			in: "id:\x00\nretry:-1\nretry:soon\nother:x\ndata:a\n\n", want: []Event{{Name: "message", Data: "a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			events, rest := readAll(NewReader(strings.NewReader(test.in), ""))
			for i := range events {
				events[i].Raw = ""
			}
			if !reflect.DeepEqual(events, test.want) || rest.Raw != test.rest {
				t.Errorf("got %+v and %q, want %+v and %q", events, rest.Raw, test.want, test.rest)
			}
		})
	}
	events, _ := readAll(NewReader(strings.NewReader("data:a\n\n"), "7"))
	if len(events) != 1 || events[0].ID != "7" {
		t.Errorf("after a request with the id 7: %+v", events)
	}
}

// FuzzReader passes any bytes to a Reader. The events must not depend on the sizes of the reads, no
// byte may be dropped, and a stream that is cut must be read as the start of the whole stream.
func FuzzReader(f *testing.F) {
	f.Add([]byte("retry:5\nid:1\nevent:x\ndata:a\n\n:\n\ndata:b\r\n\r\nid\nda"), 20)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		whole, rest := readAll(NewReader(bytes.NewReader(data), ""))
		if bytewise, _ := readAll(NewReader(iotest.OneByteReader(bytes.NewReader(data)), "")); !reflect.DeepEqual(bytewise, whole) {
			t.Fatalf("got %+v in single bytes, and %+v", bytewise, whole)
		}
		var raw strings.Builder
		for _, e := range whole {
			raw.WriteString(e.Raw)
			if e.Comment && e.Data != "" {
				t.Errorf("a comment has data: %+v", e)
			}
		}
		if raw.WriteString(rest.Raw); raw.String() != string(data) {
			t.Errorf("got the bytes %q, want %q", raw.String(), data)
		}
		cut = min(max(cut, 0), len(data))
		part, _ := readAll(NewReader(bytes.NewReader(data[:cut]), ""))
		if len(part) > len(whole) || len(part) > 0 && !reflect.DeepEqual(part, whole[:len(part)]) {
			t.Errorf("cut at %d: %+v, but the whole stream has %+v", cut, part, whole)
		}
	})
}
