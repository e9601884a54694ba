package events

import (
	"encoding/json"
	"fmt"
	"testing"
)

// FuzzElements checks that a parsed list element is the same after it is written and parsed again.
func FuzzElements(f *testing.F) {
	f.Add("739912873345024:{}")
	f.Add("full:1794225600000:{\"id\":\"1\"}")
	f.Add("739912873345024 1794225600000 1")
	f.Add("::")
	f.Add("9223372036854775808:x")
	f.Fuzz(func(t *testing.T, element string) {
		if q, err := parseQueuedEvent(element); err == nil {
			again, err := parseQueuedEvent(fmt.Sprintf("%d:%s", q.Seq, q.Event))
			if err != nil || again.Seq != q.Seq || string(again.Event) != string(q.Event) {
				t.Errorf("%q is parsed as %v, and again as %v, %v", element, q, again, err)
			}
		}
		if tracked, err := parseTracked(element); err == nil {
			if again, err := parseTracked(tracked.String()); err != nil || again != tracked {
				t.Errorf("%q is parsed as %v, and again as %v, %v", element, tracked, again, err)
			}
		}
		if l, err := parseDeadLetter(element); err == nil {
			again, err := parseDeadLetter(fmt.Sprintf("%s:%d:%s", l.Reason, l.At.UnixMilli(), l.Event))
			if err != nil || again.Reason != l.Reason || !again.At.Equal(l.At) || string(again.Event) != string(l.Event) {
				t.Errorf("%q is parsed as %v, and again as %v, %v", element, l, again, err)
			}
		}
	})
}

// FuzzBodies checks that events are valid JSON and keep the user and the data.
func FuzzBodies(f *testing.F) {
	f.Add("alice", []byte(`{"a":"<b>"}`))
	f.Add("\"\\\x00ü", []byte("1"))
	f.Fuzz(func(t *testing.T, user string, data []byte) {
		if !json.Valid(data) {
			return
		}
		for _, b := range [][]byte{
			body(presenceEvent{Type: UserOnline, User: user}),
			body(undeliveredEvent{Type: MessageUndelivered, User: user, Clients: []ClientMessage{{user, 1}}, Data: data}),
		} {
			event := append([]byte(`{"id":"1","at":1,`), b...)
			var v struct {
				User string
				Data json.RawMessage
			}
			if err := json.Unmarshal(event, &v); err != nil {
				t.Fatalf("%s: %v", event, err)
			}
			var got, want any
			if v.Data == nil {
				continue
			}
			if json.Unmarshal(v.Data, &got) != nil || json.Unmarshal(data, &want) != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("data %s became %s", data, v.Data)
			}
		}
	})
}
