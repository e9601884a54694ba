package events

import (
	"encoding/json"
	"fmt"
	"testing"
)

// FuzzElements: whatever stands in the lists, a decoder takes it as it was written or refuses it.
func FuzzElements(f *testing.F) {
	f.Add("739912873345024:{}")
	f.Add("full:1794225600000:{\"id\":\"1\"}")
	f.Add("::")
	f.Add("9223372036854775808:x")
	f.Fuzz(func(t *testing.T, element string) {
		if q, err := parseQueued(element); err == nil {
			again, err := parseQueued(fmt.Sprintf("%d:%s", q.Place, q.Event))
			if err != nil || again.Place != q.Place || string(again.Event) != string(q.Event) {
				t.Errorf("%q is %v, and written again %v, %v", element, q, again, err)
			}
		}
		if l, err := parseLetter(element); err == nil {
			again, err := parseLetter(fmt.Sprintf("%s:%d:%s", l.Reason, l.At.UnixMilli(), l.Event))
			if err != nil || again.Reason != l.Reason || !again.At.Equal(l.At) || string(again.Event) != string(l.Event) {
				t.Errorf("%q is %v, and written again %v, %v", element, l, again, err)
			}
		}
	})
}

// FuzzBodies: names and data of all kinds make events that are JSON, and say the same.
func FuzzBodies(f *testing.F) {
	f.Add("alice", []byte(`{"a":"<b>"}`))
	f.Add("\"\\\x00ü", []byte("1"))
	f.Fuzz(func(t *testing.T, user string, data []byte) {
		if !json.Valid(data) {
			return
		}
		for _, b := range [][]byte{
			body(presence{Type: UserOnline, User: user}),
			body(watch{Type: MessageUndelivered, User: user, Clients: []Place{{user, 1}}, Data: data}),
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
