package registry

import (
	"fmt"
	"testing"
	"time"
)

func TestParseBinding(t *testing.T) {
	for value, want := range map[string]struct {
		server     string
		generation int64
		ok         bool
	}{
		"a:5":                 {"a", 5, true},
		":5":                  {"", 5, true},
		"h:1:5":               {"h:1", 5, true},
		"a:9007199254740991":  {"a", 1<<53 - 1, true},
		"a:9007199254740992":  {},
		"a:99999999999999999": {},
		"a:":                  {},
		"a:-5":                {},
		"a:+5":                {},
		"a: 5":                {},
		"a:5e3":               {},
		"a":                   {},
		"":                    {},
	} {
		b, ok := parseBinding("phone", value)
		if ok != want.ok || b.Server != want.server || b.Generation != want.generation {
			t.Errorf("%q: %+v, %v; want %+v", value, b, ok, want)
		}
	}
}

func FuzzParseBinding(f *testing.F) {
	for _, seed := range []string{"a:5", ":5", "h:1:5", "a:", "", "a:9007199254740992"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		b, ok := parseBinding("phone", value)
		if !ok {
			return
		}
		if b.Generation < 0 || b.Generation >= 1<<53 {
			t.Fatalf("%q has generation %d", value, b.Generation)
		}
		again, ok := parseBinding("phone", fmt.Sprintf("%s:%d", b.Server, b.Generation))
		if !ok || again != b {
			t.Fatalf("%q is %+v, written again it is %+v", value, b, again)
		}
	})
}

func TestMalformedDescriptionIsALease(t *testing.T) {
	got := parseServer("a", map[string]string{"host": "h", "users": "many"})
	epoch := time.UnixMilli(0).UTC()
	if want := (Server{ID: "a", Host: "h", StartedAt: epoch, LastActive: epoch}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
