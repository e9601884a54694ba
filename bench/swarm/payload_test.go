package swarm

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestPayload(t *testing.T) {
	for _, want := range []struct{ n, at, size int64 }{
		{0, 0, PayloadSize}, {1, 0, PayloadSize}, {123456789, 1, PayloadSize}, {999999999999, 999999999999999999, PayloadSize}, {7, 8, 400},
	} {
		size := int(want.size)
		p := AppendSized([]byte("x"), size, want.n, want.at)[1:]
		n, at, ok := parsePayload(p, size)
		if !ok || n != want.n || at != want.at || len(p) != size || !json.Valid(p) {
			t.Errorf("%s: got %d, %d, %v, %d bytes", p, n, at, ok, len(p))
		}
		for i := range p {
			changed := bytes.Clone(p)
			changed[i] ^= 1
			m, changedAt, ok := parsePayload(changed, size)
			if ok && m == n && changedAt == at {
				t.Errorf("%s is accepted as %s", changed, p)
			}
			if _, _, ok := parsePayload(p[:i], size); ok {
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
		n, at, ok := parsePayload(p, PayloadSize)
		if !ok {
			return
		}
		if m, again, ok := parsePayload(AppendPayload(nil, n, at), PayloadSize); !ok || m != n || again != at {
			t.Errorf("%q is %d, %d, and written %d, %d", p, n, at, m, again)
		}
	})
}
