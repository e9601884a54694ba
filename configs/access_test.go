package configs

import (
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker/auth"
	"switchboard/broker/namespace"
)

func TestNamespaces(t *testing.T) {
	b, err := LoadBroker([]string{"--config", write(t, "b.yaml", `namespaces:
  "chat.v2:*":                 # the dot does not separate a section
    subscribe: users
    publish: grant
    presence: [anyone]
    history: nobody
    history_messages: 50
    history_age: 24h
    message: 4096
    publish_rate: 2.5
  "inbox:{user}": &own
    subscribe: [named, grant]
    presence: off
  "mail:{user}": *own
  news: {}
`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.Options()
	if err != nil {
		t.Fatal(err)
	}
	r := o.Access.Namespaces.For("chat.v2:1")
	if r == nil || r.Subscribe != namespace.Users || r.Publish != namespace.Grant || r.Presence != namespace.Anyone || r.History != namespace.BackendOnly ||
		r.HistoryMessages != 50 || r.HistoryAge.Hours() != 24 || r.Message != 4096 || r.PublishRate != 2.5 || r.NoPresence {
		t.Errorf("got %+v", r)
	}
	for _, channel := range []string{"inbox:alice", "mail:alice"} {
		if r := o.Access.Namespaces.For(channel); r == nil || r.Subscribe != namespace.Named|namespace.Grant || !r.NoPresence {
			t.Errorf("%s: got %+v", channel, r)
		}
	}
	if o.Access.Namespaces.For("news") == nil || o.Access.Namespaces.For("other") != nil {
		t.Error("news has no namespace, or other has one")
	}
}

func TestNoNamespaces(t *testing.T) {
	for text, configured := range map[string]bool{"": false, "namespaces:\n": false, "namespaces: {}\n": true} {
		b, err := LoadBroker([]string{"--config", write(t, "b.yaml", text)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if o, err := b.Options(); err != nil || (o.Access.Namespaces != nil) != configured {
			t.Errorf("%q: %v, %v", text, o.Access.Namespaces, err)
		}
	}
}

func TestBadNamespaces(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"unknown key":                        {"namespaces:\n  news:\n    subscribe: users\n    subscribers: users\n", "line 4: namespaces.news.subscribers: unknown key; want subscribe, "},
		"unknown word":                       {"namespaces:\n  news: {subscribe: all}\n", `line 2: namespaces.news.subscribe: "all" is none of`},
		"in a list":                          {"namespaces:\n  news: {subscribe: [users, 7]}\n", "line 2: namespaces.news.subscribe: want text"},
		"an empty list":                      {"namespaces:\n  news: {subscribe: []}\n", "line 2: namespaces.news.subscribe: want anyone"},
		"a bad name":                         {"namespaces:\n  news: {}\n  chat*: {}\n", "line 3: namespaces.chat*: \"chat*\": a colon belongs before the *"},
		"a system channel":                   {"namespaces:\n  $all: {}\n", "line 2: namespaces.$all: channels that begin with $"},
		"named without {user}":               {"namespaces:\n  'a:*':\n    publish: named\n", "line 2: namespaces.a:*: publish: named needs {user}"},
		"the same name twice":                {"namespaces:\n  news: {}\n  news: {}\n", "line 3"},
		"two patterns for the same channels": {"namespaces:\n  'a:*': {}\n  'a:{user}': {}\n", "line 2: namespaces: a:* and a:{user} match the same channels"},
		"a list":                             {"namespaces: [news]\n", "line 1: namespaces: want settings"},
		"a text":                             {"namespaces: news\n", "line 1: namespaces: want settings"},
		"a word":                             {"namespaces:\n  news: users\n", "line 2: namespaces.news: want settings"},
		"no number":                          {"namespaces:\n  news: {message: many}\n", "line 2: namespaces.news.message: want a whole number"},
		"zero":                               {"namespaces:\n  news: {history_messages: 0}\n", "line 2: namespaces.news.history_messages: want a whole number above zero"},
		"no rate":                            {"namespaces:\n  news: {publish_rate: '5'}\n", "line 2: namespaces.news.publish_rate: want a number above zero"},
		"an infinite rate":                   {"namespaces:\n  news: {publish_rate: .inf}\n", "line 2: namespaces.news"},
		"no duration":                        {"namespaces:\n  news: {history_age: 7}\n", "line 2: namespaces.news.history_age: want a duration"},
		"a long duration":                    {"namespaces:\n  news: {history_age: 1000h}\n", "line 2: namespaces.news: history_age: 1000h0m0s is not within"},
		"client_publish with namespaces":     {"auth: {client_publish: true}\nnamespaces:\n  news: {}\n", "auth.client_publish: with namespaces"},
		"no alg":                             {"auth:\n  token_keys:\n    a: {file: x}\n", "line 3: auth.token_keys.a: alg and file: both are needed"},
		"a key inline":                       {"auth:\n  token_keys:\n    a: {alg: HS256, secret: " + testSecret + "}\n", "line 3: auth.token_keys.a.secret: unknown key; want alg or file"},
		"a kid as a number":                  {"auth:\n  token_keys:\n    a: {alg: 7, file: x}\n", "line 3: auth.token_keys.a.alg: want text"},
	} {
		_, err := LoadBroker([]string{"--config", write(t, "b.yaml", c.yaml)}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := LoadBroker(nil, []string{"SWITCHBOARD_NAMESPACES={news: {subscribe: all}}"}); err == nil || !strings.Contains(err.Error(), "SWITCHBOARD_NAMESPACES: line 1: namespaces.news.subscribe") {
		t.Errorf("%v", err)
	}
}

func TestTokenSettings(t *testing.T) {
	sign := func(kid, secret string, claims jwt.MapClaims) string {
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
		if kid != "" {
			token.Header["kid"] = kid
		}
		text, err := token.SignedString([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	file := "auth:\n  audience: [chat]\n  issuer: [us]\n  anonymous: true\n  token_keys:\n    \"2026.05\": {alg: HS256, file: " + write(t, "secret", testSecret+"\n") + "}\n"
	b, err := LoadBroker([]string{"--config", write(t, "b.yaml", file)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.Options()
	if err != nil || o.Access.Tokens.Open() || !o.Access.Anonymous {
		t.Fatalf("%v, %+v", err, o)
	}
	for name, c := range map[string]struct {
		token string
		ok    bool
	}{
		"good":             {sign("2026.05", testSecret, jwt.MapClaims{"sub": "alice", "aud": "chat", "iss": "us"}), true},
		"another audience": {sign("2026.05", testSecret, jwt.MapClaims{"sub": "alice", "aud": "x", "iss": "us"}), false},
		"another issuer":   {sign("2026.05", testSecret, jwt.MapClaims{"sub": "alice", "aud": "chat", "iss": "x"}), false},
		"another kid":      {sign("2026", testSecret, jwt.MapClaims{"sub": "alice", "aud": "chat", "iss": "us"}), false},
		"no kid":           {sign("", testSecret, jwt.MapClaims{"sub": "alice", "aud": "chat", "iss": "us"}), false},
	} {
		if _, err := o.Access.Tokens.Verify(c.token); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for file, want := range map[string]string{
		"auth: {jwks_url: 'http://a.example/k?" + testSecret + "'}": "auth.jwks_url: the scheme must be https",
		"auth: {jwks_url: 'https://a/k', jwks_stale: 1m}":           "auth.jwks_url: keys that are valid for 1m0s",
		"auth: {token_keys: {a: {alg: HS256, file: /nowhere}}}":     "auth.token_keys.a: open /nowhere",
		"auth: {token_keys: {a: {alg: RS256, file: /nowhere}}}":     "auth.token_keys.a: open /nowhere",
		"auth: {token_keys: {a: {alg: none, file: /dev/null}}}":     `auth: key "a": "none" is not a supported algorithm`,
		"auth: {keys: ['sha256:" + testSecret + " push']}":          "auth.keys: entry 1 of 1: want 64 hex digits after sha256:",
		"auth: {keys: [" + testSecret + "]}":                        "auth.keys: entry 1 of 1: want the entry that `broker key` prints",
	} {
		b, err := LoadBroker([]string{"--config", write(t, "b.yaml", file)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Options(); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestRemoteSettings(t *testing.T) {
	load := func(more string) *auth.Tokens {
		b, err := LoadBroker([]string{"--config", write(t, "b.yaml", "auth: {jwks_url: 'https://a/k'"+more+"}")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		o, err := b.Options()
		if err != nil {
			t.Fatal(err)
		}
		return o.Access.Tokens
	}
	for more, same := range map[string]bool{"": true, ", jwks_refresh: 1h": false, ", jwks_grace: 1h": false, ", jwks_stale: 1h": false, ", jwks_refresh: 10m": true} {
		if err := load(more).Adopt(load("")); (err == nil) != same {
			t.Errorf("%q: %v", more, err)
		}
	}
}
