package nearest

import (
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	names := []string{"push", "tail", "who", "channels", "history", "room", "token"}
	for word, want := range map[string][]string{
		"psuh":    {"push"},
		"PUSH":    {"push"},
		"hist":    {"history"},
		"chanels": {"channels"},
		"rooms":   {"room"},
		"t":       {"tail", "token"},
		"xyz":     {},
		"":        {},
	} {
		if got := Names(word, names); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Question("hwo", names); got != "; did you mean who?" {
		t.Errorf("%q", got)
	}
	if got := Question("xyz", names); got != "" {
		t.Errorf("%q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"kitten", "sitting", 3}, {"abcd", "acbd", 1}, {"é", "e", 1}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q, %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
