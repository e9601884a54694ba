package auth

import (
	"errors"
	"strings"
	"testing"

	"switchboard/internal/wire"
)

func TestKeysCheck(t *testing.T) {
	keys, err := NewKeys([]string{"plain:old-key-of-the-test", "plain:new-key-of-the-test push+admin two"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		header string
		want   bool
	}{
		{"Bearer new-key-of-the-test", true},
		{"Bearer old-key-of-the-test", true},
		{"bearer  new-key-of-the-test ", true}, // the scheme is case-insensitive, white space is trimmed
		{"Bearer new-key-of-the-tes", false},
		{"Bearer new-key-of-the-tests", false},
		{"Bearer ", false},
		{"Bearer", false},
		{"new-key-of-the-test", false},
		{"Bearer plain:new-key-of-the-test", false},
		{"Basic new-key-of-the-test", false},
		{"", false},
	} {
		err := keys.Check(c.header, ScopeAdmin)
		if (err == nil) != c.want {
			t.Errorf("%q: %v", c.header, err)
		}
		if err == nil {
			continue
		}
		if refusal, ok := errors.AsType[*wire.Error](err); !ok || refusal.Code != wire.Unauthorized {
			t.Errorf("%q: %v does not have the code unauthorized", c.header, err)
		}
		if strings.Contains(err.Error(), "new-") {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
}

func TestKeysOpen(t *testing.T) {
	var none Keys
	if err := none.Check("", ScopeAdmin); err != nil || !none.Open() {
		t.Errorf("open %v, %v", none.Open(), err)
	}
}

func TestKeysWithScopes(t *testing.T) {
	made := map[string]string{} // by the scopes
	var entries []string
	for _, scopes := range []string{"push", "read", "push+read", "admin", "admin+push"} {
		key, entry := NewKey()
		made[scopes] = key
		entries = append(entries, entry+" "+scopes+" the-"+scopes)
	}
	plain := "a-key-in-clear-text"
	made["plain"] = plain
	keys, err := NewKeys(append(entries, "plain:"+plain))
	if err != nil || !keys.Plain() || keys.Len() != 6 {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"push": "push", "read": "read", "push+read": "push read", "admin": "push read admin", "admin+push": "push read admin",
		"plain": "push read admin",
	} {
		for _, scope := range scopes {
			header := "Bearer " + made[name]
			err := keys.Check(header, scope)
			if may := strings.Contains(want, scope); may != (err == nil) {
				t.Errorf("%s for %s: %v", name, scope, err)
			}
			if refusal, ok := errors.AsType[*wire.Error](err); err != nil && (!ok || refusal.Code != wire.Forbidden || strings.Contains(err.Error(), made[name])) {
				t.Errorf("%s for %s: %v", name, scope, err)
			}
			if err := keys.Check(header, ""); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, entry := range entries { // a leaked configuration contains no keys
		header := "Bearer " + strings.Fields(entry)[0]
		if keys.Check(header, "") == nil {
			t.Error("a digest passes as a key")
		}
	}
}

func TestBadEntries(t *testing.T) {
	_, entry := NewKey()
	key := strings.Repeat("k", MinKey)
	for given, want := range map[string]string{
		"":                               "empty",
		" plain:" + key:                  "white space",
		"plain:" + key + "\n":            "white space",
		"sha256:":                        "the scopes",
		entry:                            "the scopes",
		entry + " push a name":           "a name, of one word",
		entry + " write":                 "not made of scopes",
		entry + " push,read":             "not made of scopes",
		entry + " push+":                 "not made of scopes",
		entry[:len(entry)-2] + " push":   "64 hex digits",
		"sha256:swb_x push":              "64 hex digits",
		strings.ToUpper(entry) + " push": "sha256: is written in lower case",
		"Plain:" + key:                   "plain: is written in lower case",
		entry[7:] + " push":              "want the entry",
		"# the backend of the shop":      "want the entry",
		"x":                              "want the entry",
		key:                              "plain:<key>",
		"plain:":                         "16 bytes",
		"plain:" + key[1:]:               "16 bytes",
		"plain: " + key:                  "16 bytes",
		"plain:" + key + " " + key:       "not made of scopes",
	} {
		_, err := NewKeys([]string{"plain:" + key, given})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "API key 2 of 2") {
			t.Errorf("%q: %v", given, err)
		}
		if err != nil && (strings.Contains(strings.ToLower(err.Error()), entry[7:]) || strings.Contains(err.Error(), key[1:])) {
			t.Errorf("the error repeats the entry: %v", err)
		}
		if alone := CheckEntry(given); alone == nil || !strings.HasSuffix(err.Error(), alone.Error()) {
			t.Errorf("%q alone: %v", given, alone)
		}
	}
}

func TestNewKey(t *testing.T) {
	a, entry := NewKey()
	b, _ := NewKey()
	if a == b || len(a) != len(KeyPrefix)+43 || !strings.HasPrefix(a, KeyPrefix) || strings.Contains(entry, a) {
		t.Errorf("%s, %s", a, entry)
	}
	keys, err := NewKeys([]string{entry + " admin"})
	if err != nil || keys.Plain() {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{a: true, b: false, a + "x": false, a[:len(a)-1]: false, strings.ToLower(a) + "-": false} {
		header := "Bearer " + key
		if (keys.Check(header, "push") == nil) != want {
			t.Errorf("%s: not %v", key, want)
		}
	}
}
