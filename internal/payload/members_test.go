package payload

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"switchboard/internal/wire"
)

// TestMembers compares the methods that read members of requests with encoding/json, for the texts
// that they do not leave to it.
func TestMembers(t *testing.T) {
	for _, c := range []struct {
		text    string
		into    any // a pointer for encoding/json
		scan    func(*Scanner) (any, bool)
		scanned bool
	}{
		{`true`, new(bool), anyOf((*Scanner).Bool), true},
		{`false`, new(bool), anyOf((*Scanner).Bool), true},
		{`1`, new(bool), anyOf((*Scanner).Bool), false},
		{`-1.5e3`, new(float64), anyOf((*Scanner).Number), true},
		{`1e400`, new(float64), anyOf((*Scanner).Number), false},
		{`"1"`, new(float64), anyOf((*Scanner).Number), false},
		{`["a", "b"]`, new([]string), anyOf((*Scanner).Texts), true},
		{`[]`, new([]string), anyOf((*Scanner).Texts), false},
		{`["a",1]`, new([]string), anyOf((*Scanner).Texts), false},
		{`{"a":1, "b":[ ]}`, new(wire.Values), anyOf((*Scanner).Values), true},
		{`{"a":1,"a":2}`, new(wire.Values), anyOf((*Scanner).Values), false},
		{`{}`, new(wire.Values), anyOf((*Scanner).Values), false},
		{`{"a":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + `}`, new(wire.Values), anyOf((*Scanner).Values), false},
		{` [1 ,2]`, new(json.RawMessage), anyOf((*Scanner).Raw), true},
	} {
		s := NewScanner([]byte(c.text + " "))
		got, ok := c.scan(&s)
		if ok = ok && s.End(); ok != c.scanned {
			t.Errorf("%.40s: scanned is %v", c.text, ok)
		}
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte(c.text), c.into); err != nil {
			t.Errorf("%.40s: %v", c.text, err)
		}
		want := reflect.ValueOf(c.into).Elem().Interface()
		if raw, is := want.(json.RawMessage); is {
			want = json.RawMessage(strings.TrimSpace(string(raw)))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%.40s: got %v, want %v", c.text, got, want)
		}
	}
}

func anyOf[T any](f func(*Scanner) (T, bool)) func(*Scanner) (any, bool) {
	return func(s *Scanner) (any, bool) { return f(s) }
}

// TestWithin checks that the levels around a value count for its depth.
func TestWithin(t *testing.T) {
	text := []byte(strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1))
	for levels, want := range map[int]bool{0: true, 1: true, 2: false} {
		s := NewScanner(text)
		s.Within(levels)
		if _, ok := s.Raw(); ok != want {
			t.Errorf("%d levels around the value: %v", levels, ok)
		}
	}
}
