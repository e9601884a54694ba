package redispipe

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestReply(t *testing.T) {
	r := ReplyOf([]any{int64(7), "9007199254740993", "text", []any{"a", "b"}, []any{}, "x", "y"})
	if n, m, text := r.Int(), r.Int(), r.Text(); n != 7 || m != 9007199254740993 || text != "text" {
		t.Errorf("got %d, %d and %q", n, m, text)
	}
	if list, none := r.Texts(), r.Texts(); !slices.Equal(list, []string{"a", "b"}) || none != nil {
		t.Errorf("got %q and %q", list, none)
	}
	if n, rest := r.Len(), r.Rest(); n != 2 || !maps.Equal(Pairs(rest), map[string]string{"x": "y"}) {
		t.Errorf("got %d elements, %q", n, rest)
	}
	if r.Err != nil || r.Rest() != nil {
		t.Errorf("at the end: %v", r.Err)
	}
}

// TestBadReply: the first invalid element sets the error, and what follows is zero.
func TestBadReply(t *testing.T) {
	for _, c := range []struct {
		value any
		read  func(*Reply)
		want  string
	}{
		{"text", func(*Reply) {}, "string is not an array"},
		{nil, func(*Reply) {}, "<nil> is not an array"},
		{[]any{}, func(r *Reply) { r.Int() }, "too short"},
		{[]any{"x"}, func(r *Reply) { r.Int() }, `"x" is not an integer`},
		{[]any{[]any{}}, func(r *Reply) { r.Int() }, "[]interface {} is not an integer"},
		{[]any{int64(1)}, func(r *Reply) { r.Text() }, "int64 is not a string"},
		{[]any{int64(1)}, func(r *Reply) { r.Texts() }, "int64 is not an array"},
		{[]any{[]any{int64(1)}}, func(r *Reply) { r.Texts() }, "int64 is not a string"},
		{[]any{"a", int64(1)}, func(r *Reply) { r.Rest() }, "int64 is not a string"},
	} {
		r := ReplyOf(c.value)
		c.read(r)
		if r.Err == nil || !strings.Contains(r.Err.Error(), "unexpected reply of a script") || !strings.Contains(r.Err.Error(), c.want) {
			t.Errorf("%v: got %v, want %s", c.value, r.Err, c.want)
		}
		if first := r.Err; r.Text() != "" || r.Err != first {
			t.Errorf("%v: after the error: %v", c.value, r.Err)
		}
	}
}
