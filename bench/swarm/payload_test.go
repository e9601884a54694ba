package swarm

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestPayload(t *testing.T) {
	for _, want := range [][2]int64{{0, 0}, {1, 0}, {123456789, 1}, {999999999999, 999999999999999999}} {
		p := AppendPayload([]byte("x"), want[0], want[1])[1:]
		n, at, ok := parsePayload(p)
		if !ok || n != want[0] || at != want[1] || len(p) != PayloadSize || !json.Valid(p) {
			t.Errorf("%s: got %d, %d, %v, %d bytes", p, n, at, ok, len(p))
		}
		for i := range p {
			changed := bytes.Clone(p)
			changed[i] ^= 1
			m, changedAt, ok := parsePayload(changed)
			if ok && m == n && changedAt == at {
				t.Errorf("%s is accepted as %s", changed, p)
			}
			if _, _, ok := parsePayload(p[:i]); ok {
				t.Errorf("the incomplete %s is accepted", p[:i])
			}
		}
	}
}

// FuzzPayload parses any bytes. Numbers that are accepted must survive encoding.
func FuzzPayload(f *testing.F) {
	f.Add(AppendPayload(nil, 7, 8))
	f.Add([]byte(`{"n":1,"t":2,"text":"`))
	f.Fuzz(func(t *testing.T, p []byte) {
		n, at, ok := parsePayload(p)
		if !ok {
			return
		}
		if m, again, ok := parsePayload(AppendPayload(nil, n, at)); !ok || m != n || again != at {
			t.Errorf("%q is %d, %d, and written %d, %d", p, n, at, m, again)
		}
	})
}
