package configs

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/internal/redisurl"
	"switchboard/queue"
	"switchboard/registry"
)

// otherValue returns a value that is not the default, as text.
func otherValue(t *testing.T, s *row) string {
	switch {
	case s.Key == "namespaces":
		return `{"chat.v2:*": {subscribe: users}}`
	case strings.HasPrefix(s.Key, "kit."):
		return "{}"
	case s.Key == "auth.token_keys":
		return "a: {alg: HS256, file: " + write(t, "secret", testSecret) + "}"
	case s.Key == "limits.proxies", strings.HasPrefix(s.Key, "limits.proxy_protocol"):
		return "10.0.0.0/8"
	case s.Key == "auth.jwks_url":
		return "https://issuer.example/keys"
	case len(s.Choices) > 0:
		return s.Choices[0]
	case strings.HasSuffix(s.Key, "_keys_file"):
		return write(t, "key.pem", publicKey(t))
	case s.Key == "auth.keys":
		return "plain:" + testSecret
	case s.Key == "auth.keys_file":
		return write(t, "keys", "# backend\nplain:"+testSecret+"\n")
	case s.Key == "hosts":
		return "push.example.com"
	case strings.HasSuffix(s.Key, "_file"):
		return write(t, "secret", testSecret+"\n")
	case s.Key == "hooks.timeout":
		return "4s"
	case s.Type == reflect.TypeFor[time.Duration]():
		return "7h"
	case s.Key == "fast_push":
		return "false"
	case s.Type.Kind() == reflect.Bool:
		return "true"
	case s.Type.Kind() == reflect.Slice, s.Type.Kind() == reflect.String:
		return testSecret
	}
	return "77"
}

func publicKey(t *testing.T) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return publicPEM(t, public)
}

func publicPEM(t *testing.T, public any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// eventOptions returns all options that the settings of webhooks determine.
func eventOptions(t *testing.T, w Webhooks) []any {
	t.Helper()
	sender, err := w.Sender()
	if err != nil {
		t.Fatal(err)
	}
	return []any{sender, w.Dispatcher(), w.Enabled()}
}

// TestEverySettingHasAnEffect changes one setting after another and checks that some options
// differ.
func TestEverySettingHasAnEffect(t *testing.T) {
	all := func(b Broker) []any {
		o, err := b.Options()
		if err != nil {
			t.Fatal(err)
		}
		open := o.Access.Tokens.Open()
		o.Access.Tokens = nil // it has functions, which are never equal
		return []any{o, b.Registry(), b.Queue(), open, b.EventStore(), eventOptions(t, b.Webhooks), b.Kit}
	}
	for _, s := range brokerProgram.rows() {
		if slices.Contains([]string{"redis", "log_level", "log_format", "console", "auth.rs256_keys_file", "auth.leeway",
			"auth.jwks_refresh", "auth.jwks_grace", "auth.jwks_stale", "auth.audience", "auth.issuer",
			"runtime.timer_slack", "runtime.spare_procs"}, s.Key) || strings.Contains(s.Key, "tls.") {
			continue // these are for the command, or have a test below
		}
		b, err := LoadBroker(nil, []string{envName(s.Key) + "=" + otherValue(t, s)})
		if err != nil {
			t.Errorf("%s: %v", s.Key, err)
			continue
		}
		if reflect.DeepEqual(all(b), all(DefaultBroker())) {
			t.Errorf("%s changes nothing", s.Key)
		}
	}
	for _, s := range janitorProgram.rows() {
		if slices.Contains([]string{"redis", "log_level", "log_format", "http", "once", "dead_letters", "retry"}, s.Key) || strings.Contains(s.Key, "tls.") {
			continue
		}
		j, err := LoadJanitor([]string{"--redis", "redis://h"}, []string{janitorEnv(s.Key) + "=" + otherValue(t, s)})
		if err != nil {
			t.Errorf("%s: %v", s.Key, err)
			continue
		}
		d := DefaultJanitor()
		all := func(j Janitor) []any {
			return []any{j.Options, j.Registry(), j.Queue(), j.EventStore(), eventOptions(t, j.Webhooks)}
		}
		if reflect.DeepEqual(all(j), all(d)) {
			t.Errorf("janitor: %s changes nothing", s.Key)
		}
	}
}

func TestLeeway(t *testing.T) {
	claims := jwt.RegisteredClaims{Subject: "alice", ExpiresAt: jwt.NewNumericDate(time.Now().Add(-time.Hour))}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(testSecret))
	if err != nil {
		t.Fatal(err)
	}
	for leeway, want := range map[string]error{"10s": auth.ErrExpired, "2h": nil} {
		b, err := LoadBroker(nil, []string{"SWITCHBOARD_AUTH_HS256_SECRET=" + testSecret, "SWITCHBOARD_AUTH_LEEWAY=" + leeway})
		if err != nil {
			t.Fatal(err)
		}
		o, err := b.Options()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Access.Tokens.Verify(token); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", leeway, err, want)
		}
	}
}

func TestRSAKey(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	b := Broker{Auth: Auth{RS256KeysFile: write(t, "key.pem", publicPEM(t, &key.PublicKey))}}
	if o, err := b.Options(); err != nil || o.Access.Tokens.Open() {
		t.Errorf("the key was not accepted: %v", err)
	}
	b.Auth.RS256KeysFile = write(t, "key.pem", publicKey(t))
	if _, err := b.Options(); err == nil || !strings.HasPrefix(err.Error(), "auth: RS256 key 1: ") {
		t.Errorf("an Ed25519 key: %v", err)
	}
}

func TestLifetimesDependOnIntervals(t *testing.T) {
	b, err := LoadBroker(nil, []string{"SWITCHBOARD_TIMES_BEAT=3s", "SWITCHBOARD_TIMES_REFRESH=10m", "SWITCHBOARD_TIMES_CLIENT_TTL=2h", "SWITCHBOARD_TIMES_CHANNEL_TTL=1000h"})
	if err != nil {
		t.Fatal(err)
	}
	r, q := b.Registry(), b.Queue()
	if r.Lease != 15*time.Second || r.UserTTL != 50*time.Minute {
		t.Errorf("lease %v, users %v", r.Lease, r.UserTTL)
	}
	if q.RecordTTL != 2*time.Hour || q.ChannelTTL != 1000*time.Hour || q.MetaTTL != 6*time.Hour {
		t.Errorf("the record lives %v, and the position %v after the messages", q.RecordTTL, q.MetaTTL)
	}
}

func TestSecretFiles(t *testing.T) {
	tests := []struct{ variable, text, want string }{
		{"AUTH_KEYS_FILE", "# of the shop\n\nplain:" + testSecret + "\n  # of the forum\nplain:" + testSecret + "x push forum\r\n\n", ""},
		{"AUTH_KEYS_FILE", "\n \n", "auth.keys_file: "},
		{"AUTH_KEYS_FILE", "# nothing\n", "is empty"},
		{"AUTH_KEYS_FILE", "# one\nplain:" + testSecret + "\n\n" + testSecret + "\n", "/secret: line 4: want the entry that `broker key` prints (sha256:…), or plain:<key>"},
		{"AUTH_KEYS_FILE", "SHA256:" + strings.Repeat("ab", 32) + " push\n", "/secret: line 1: sha256: is written in lower case"},
		{"AUTH_KEYS_FILE", "x", "line 1: want the entry"},
		{"AUTH_KEYS_FILE", "plain:hunter2", "line 1: want a key of at least 16 bytes after plain:"},
		{"AUTH_HS256_SECRET_FILE", testSecret + "\n" + testSecret + "x", ""},
		{"AUTH_HS256_SECRET_FILE", "", "is empty"},
		{"AUTH_HS256_SECRET_FILE", testSecret + "\n#" + testSecret + "\n" + testSecret[:31], "line 3: the secret has less than 32 bytes"},
		{"HOOKS_SECRETS_FILE", "# one\n" + testSecret[:15], "/secret: line 2: the secret has less than 16 bytes"},
		{"AUTH_HS256_SECRET_FILE", "\xff\xfe" + testSecret, "is not text"},
		{"AUTH_HS256_SECRET_FILE", "-----BEGIN PUBLIC KEY-----", "line 1: the secret is a PEM file"},
		{"AUTH_EDDSA_KEYS_FILE", testSecret, "auth: EdDSA key 1: there is no PEM block"},
		{"PEER_SECRET_FILE", testSecret + "\r\n", ""},
		{"PEER_SECRET_FILE", "# on all instances\n\n" + testSecret + "\n", ""},
		{"PEER_SECRET_FILE", testSecret + "\n" + testSecret, "peer_secret_file: "},
		{"PEER_SECRET_FILE", testSecret[:31], "peer_secret_file: it has 31 bytes, at least 32 are needed"},
	}
	for _, tt := range tests {
		b, err := LoadBroker(nil, []string{envPrefix + tt.variable + "=" + write(t, "secret", tt.text)})
		if err != nil {
			t.Fatal(err)
		}
		o, err := b.Options()
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s %q: %v", tt.variable, tt.text, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), testSecret)):
			t.Errorf("%s %q: got %v, want %q", tt.variable, tt.text, err, tt.want)
		case o.Links.Secret != "" && o.Links.Secret != testSecret:
			t.Errorf("the line break is in the secret %q", o.Links.Secret)
		}
	}
	b := Broker{PeerSecretFile: "nowhere"}
	if _, err := b.Options(); err == nil || err.Error() != "peer_secret_file: open nowhere: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

// withStores adds the stores to o like the command.
func withStores(o broker.Options, b Broker) broker.Options {
	memory := registry.NewMemory(b.Registry())
	o.Store.Registry = memory
	o.Store.Queue = queue.NewMemory(b.Queue(), nil)
	o.Store.Shared = b.Redis != ""
	return o
}

func TestShippedBrokerFiles(t *testing.T) {
	secret, keys, pem := write(t, "secret", testSecret), write(t, "keys", "plain:"+testSecret), write(t, "key.pem", publicKey(t))
	environ := []string{
		"SWITCHBOARD_AUTH_KEYS_FILE=" + keys, "SWITCHBOARD_PEER_SECRET_FILE=" + secret,
		"SWITCHBOARD_AUTH_EDDSA_KEYS_FILE=" + pem,
	}
	for name, scheme := range map[string]string{"development": "", "production": "redis://", "cluster": "redis-cluster://"} {
		t.Run(name, func(t *testing.T) {
			env := environ
			if name == "development" {
				env = nil
			}
			b, err := LoadBroker([]string{"--config", name + ".yaml"}, env)
			if err != nil {
				t.Fatal(err)
			}
			b.Auth.RS256KeysFile = "" // this test has only an Ed25519 key
			o, err := b.Options()
			if err != nil {
				t.Fatal(err)
			}
			if err := withStores(o, b).Validate(); err != nil {
				t.Error(err)
			}
			checkRedis(t, b.Redis, scheme)
			if name == "development" {
				return
			}
			o.Access.Keys, o.Access.Tokens, o.Links.Secret = auth.Keys{}, nil, ""
			if withStores(o, b).Validate() == nil {
				t.Error("Validate accepts it without keys, tokens and peer secret")
			}
			if b.Insecure || len(b.Auth.Keys) > 0 || b.Auth.HS256Secret != "" || b.PeerSecret != "" {
				t.Error("there is a secret in the file")
			}
		})
	}
}

func checkRedis(t *testing.T, url Secret, scheme string) {
	t.Helper()
	if scheme == "" && url == "" {
		return
	}
	if !strings.HasPrefix(string(url), scheme) || scheme == "" {
		t.Errorf("Redis is %s, want %s", string(url), scheme)
	}
	client, _, err := redisurl.Open(string(url))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func TestShippedProductionNeedsItsFiles(t *testing.T) {
	b, err := LoadBroker([]string{"--config", "production.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Options(); err == nil || !strings.HasPrefix(err.Error(), "auth.keys_file: ") {
		t.Errorf("got %v", err)
	}
}

func TestShippedJanitorFile(t *testing.T) {
	j, err := LoadJanitor([]string{"--config", "janitor.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkRedis(t, j.Redis, "redis://")
	b, err := LoadBroker([]string{"--config", "production.yaml"}, nil)
	if err != nil || b.Prefix != j.Prefix || b.Redis != j.Redis {
		t.Error("production.yaml and janitor.yaml have different prefixes or URLs")
	}
}
