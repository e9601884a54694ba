package kit

import (
	"strings"
	"testing"
	"time"
)

func TestCheckKey(t *testing.T) {
	for _, c := range []struct {
		id, key, err string
	}{
		{"", "", ""}, {"7", "", ""}, {"", "k 1", "key"}, {"", "k1", ""}, {"7", "k1", "key"}, {"", strings.Repeat("k", 201), "key"},
	} {
		if err := CheckKey(c.id, c.key); (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("CheckKey(%q, %q) = %v", c.id, c.key, err)
		}
	}
}

func TestKeyedID(t *testing.T) {
	id := KeyedID("amy", "k1")
	if again := KeyedID("amy", "k1"); again != id || len(id) != 16 {
		t.Errorf("%q, then %q", id, again)
	}
	if KeyedID("bob", "k1") == id || KeyedID("amy", "k2") == id || KeyedID("", "k1") == id {
		t.Error("another user or another key has the same id")
	}
}

func TestTTL(t *testing.T) {
	for _, c := range []struct {
		ms, seconds int64
		want        time.Duration
		err         string
	}{
		{0, 0, 0, ""},
		{1500, 0, 1500 * time.Millisecond, ""},
		{0, 60, time.Minute, ""},
		{60_000, 60, 0, "ttl: "},
		{60_001, 0, 0, "ttl_ms: "},
		{-1, 0, 0, "ttl_ms: "},
		{0, 61, 0, "ttl: "},
		{0, 1 << 62, 0, "ttl: "},
	} {
		d, err := TTL(c.ms, c.seconds, time.Minute)
		if d != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("TTL(%d, %d) = %v, %v", c.ms, c.seconds, d, err)
		}
	}
}
