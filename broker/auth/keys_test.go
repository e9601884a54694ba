package auth

import (
	"errors"
	"strings"
	"testing"

	"switchboard/internal/wire"
)

func TestKeysCheck(t *testing.T) {
	keys, err := NewKeys([]string{"old-key", "new-key"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		header string
		want   bool
	}{
		{"Bearer new-key", true},
		{"Bearer old-key", true},
		{"bearer  new-key ", true}, // the scheme has no case, white space around is trimmed
		{"Bearer new-ke", false},
		{"Bearer new-keys", false},
		{"Bearer ", false},
		{"Bearer", false},
		{"new-key", false},
		{"Basic new-key", false},
		{"", false},
	} {
		err := keys.Check(c.header)
		if (err == nil) != c.want {
			t.Errorf("%q: %v", c.header, err)
		}
		if err == nil {
			continue
		}
		if refusal, ok := errors.AsType[*wire.Error](err); !ok || refusal.Code != wire.Unauthorized {
			t.Errorf("%q: %v is no unauthorized", c.header, err)
		}
		if strings.Contains(err.Error(), "new-") {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
}

func TestKeysOpen(t *testing.T) {
	var none Keys
	if err := none.Check(""); err != nil || !none.Open() {
		t.Errorf("open %v, %v", none.Open(), err)
	}
	for _, bad := range []string{"", " key", "key\n"} {
		if _, err := NewKeys([]string{"key", bad}); err == nil {
			t.Errorf("%q passes as a key", bad)
		}
	}
}

func TestPeerSecret(t *testing.T) {
	s := NewPeerSecret("between us")
	if s.Open() || s.Check("between us") != nil {
		t.Error("the secret does not fit itself")
	}
	for _, given := range []string{"", "between", "between us "} {
		if s.Check(given) == nil {
			t.Errorf("%q passes", given)
		}
	}
	if none := NewPeerSecret(""); !none.Open() || none.Check("anything") != nil {
		t.Error("without a secret somebody is refused")
	}
}
