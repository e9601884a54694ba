package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestClientIDs(t *testing.T) {
	long := strings.Repeat("x", MaxName)
	for _, c := range []struct{ user, client, id string }{
		{"", "tab", "tab"}, {"alice", "phone", "alice/phone"}, {"a/b", "c", "a/b/c"}, {"a/", "c", "a//c"}, {"/", "c", "//c"},
		{long, long, long + "/" + long},
	} {
		id := ClientID(c.user, c.client)
		if id != c.id || UserOf(id) != c.user || ClientPart(id) != c.client || CheckClientID(id) != nil {
			t.Errorf("%s of %s is %s, of %s: %v", c.client, c.user, id, UserOf(id), CheckClientID(id))
		}
	}
	for _, id := range []string{"", "/", "/phone", "alice/", "a b", "a b/c", "a/b c", "{a}/b", long + "x", long + "x/c", "u/" + long + "x"} {
		if own, ok := errors.AsType[*Error](CheckClientID(id)); !ok || own.Code != BadRequest {
			t.Errorf("%.20q is accepted", id)
		}
	}
	if err := CheckClientPart("alice/phone"); err == nil || !strings.Contains(err.Error(), "client: '/' at byte 5") {
		t.Errorf("got %v", err)
	}
}

func TestCheckSecret(t *testing.T) {
	for secret, good := range map[string]bool{
		"sixteen bytes...": true, strings.Repeat("é", 8): true, strings.Repeat("x", 200): true,
		"": false, "fifteen bytes..": false, strings.Repeat("x", 201): false,
		"sixteen bytes..\n": false, "sixteen bytes..\xff": false, "sixteen bytes..\u202e": false,
	} {
		err := CheckSecret(secret)
		if good != (err == nil) || err != nil && secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("%.20q: %v", secret, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "$all", "news/sport:1", "Zürich", "日本", `"quoted\"`, strings.Repeat("x", MaxName), "<&>", "\u200d"} {
		if err := CheckName("channel", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"":                             "channel: the name is empty",
		strings.Repeat("x", MaxName+1): "channel: the name has 201 bytes, at most 200 are allowed",
		"a\xffb":                       "channel: the name is not UTF-8",
		"a b":                          "channel: character ' ' at byte 1 of the name is not allowed",
		"a\nb":                         `channel: character '\n' at byte 1 of the name is not allowed`,
		"{a":                           "channel: character '{' at byte 0",
		"ü}":                           "channel: character '}' at byte 2",
		"a\x00":                        "channel: character '\\x00' at byte 1",
		"a\x7f":                        "channel: character '\\x7f' at byte 1",
		"a\u0085":                      "channel: character '\\u0085' at byte 1",
		"a\u00a0":                      "channel: character '\\u00a0' at byte 1",
		"a\u2028":                      "channel: character '\\u2028' at byte 1",
		"a\u3000":                      "channel: character '\\u3000' at byte 1",
	} {
		err := CheckName("channel", name)
		own, ok := errors.AsType[*Error](err)
		if !ok || own.Code != BadRequest || !strings.Contains(own.Message, want) {
			t.Errorf("%.20q: got %v, want bad_request with %q", name, err, want)
		}
	}
	if !IsSystem("$all") || IsSystem("all$") || IsSystem("") {
		t.Error("a system channel is one whose name starts with $")
	}
}

func TestCheckMethod(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "room.join": true, "a_b-c.9": true, strings.Repeat("x", MaxMethod): true,
		"": false, "Room": false, "a b": false, "a/b": false, "é": false, strings.Repeat("x", MaxMethod+1): false,
	} {
		err := CheckMethod(name)
		if own, refused := errors.AsType[*Error](err); good != (err == nil) || refused && own.Code != BadRequest {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// FuzzClientID checks that a valid id determines its user and its client.
func FuzzClientID(f *testing.F) {
	f.Add("alice", "phone")
	f.Add("", "c-1")
	f.Add("a/b/", "c")
	f.Add("a", "b/c")
	f.Fuzz(func(t *testing.T, user, client string) {
		good := (user == "" || CheckName("user", user) == nil) && CheckClientPart(client) == nil
		id := ClientID(user, client)
		if good && (UserOf(id) != user || ClientPart(id) != client || CheckClientID(id) != nil) {
			t.Fatalf("%q and %q are %q, which is %q of %q", user, client, id, ClientPart(id), UserOf(id))
		}
		if CheckClientID(id) == nil && ClientID(UserOf(id), ClientPart(id)) != id {
			t.Fatalf("%q is %q of %q", id, ClientPart(id), UserOf(id))
		}
	})
}
