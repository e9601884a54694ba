package hook

import (
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzDecode checks that only "allow":true allows, and that all returned fields are valid.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`{"allow":true}`, `{"allow":false,"reason":"a\u0000é"}`, `{"allow":true,"info":{"a":1},"user":"b"}`, `{"allow":null}`, `[]`, ``} {
		f.Add(true, []byte(text))
		f.Add(false, []byte(text))
	}
	f.Fuzz(func(t *testing.T, connect bool, text []byte) {
		kind := Subscribe
		if connect {
			kind = Connect
		}
		a, err := decode(kind, text)
		if err != nil {
			if a.Allow {
				t.Fatal("allowed with an error")
			}
			return
		}
		var raw struct{ Allow *bool }
		if json.Unmarshal(text, &raw) != nil || raw.Allow == nil || *raw.Allow != a.Allow {
			t.Fatalf("%q is %+v", text, a)
		}
		if len(a.Reason) > maxReason+len("…") || !utf8.ValidString(a.Reason) || a.Allow && a.Reason != "" || !a.Allow && (a.User != "" || a.Info != nil) {
			t.Fatalf("%q is %+v", text, a)
		}
		for _, r := range a.Reason {
			if unicode.IsControl(r) {
				t.Fatalf("a control character in %q", a.Reason)
			}
		}
		if a.Info != nil && (!json.Valid(a.Info) || kind != Connect) {
			t.Fatalf("%q is %+v", text, a)
		}
	})
}
