package main

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/certtest"
	"switchboard/internal/testbed"
)

const profilesFile = `default: dev
profiles:
  dev: {url: "http://dev:1"}
  prod: {url: "https://prod:1,https://prod:2", key_file: prod.key, ca_file: /etc/ca.pem, token_file: alice.token}
`

// TestPrecedence: flags, the profile of --profile, the environment, other profiles.
func TestPrecedence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profiles.yaml")
	write(t, path, profilesFile)
	prodKey := filepath.Join(filepath.Dir(path), "prod.key")
	for _, tt := range []struct {
		name             string
		flags            string // --url, --key-file, --profile
		environ          string // without SWITCHBOARD_
		url, key, source string
	}{
		{"nothing", "", "PROFILES=/nowhere", defaultURL, "", "--url"},
		{"the default profile", "", "", "http://dev:1", "", "profile dev"},
		{"the profile of the environment", "", "PROFILE=prod", "https://prod:1,https://prod:2", prodKey, "profile prod"},
		{"the environment goes before its profile", "", "PROFILE=prod KEY=k", "https://prod:1,https://prod:2", "k", "profile prod"},
		{"another address: not the key of the profile", "", "PROFILE=prod URL=http://e", "http://e", "", "SWITCHBOARD_URL"},
		{"a named profile goes before the environment", "--profile=prod", "URL=http://e KEY=k", "https://prod:1,https://prod:2", prodKey, "profile prod"},
		{"a flag goes before its profile", "--profile=prod --url=http://f", "", "http://f", "", "--url"},
		{"a flag with a key", "--profile=prod --key-file=f", "KEY=k", "https://prod:1,https://prod:2", "f", "profile prod"},
		{"the key of the environment for a profile without one", "--profile=dev", "KEY=k", "http://dev:1", "k", "profile dev"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &app{environ: []string{"SWITCHBOARD_PROFILES=" + path}}
			for pair := range strings.FieldsSeq(tt.environ) {
				a.environ = append(a.environ, "SWITCHBOARD_"+pair)
			}
			if err := a.root().ParseFlags(strings.Fields(tt.flags)); err != nil {
				t.Fatal(err)
			}
			if err := a.chooseProfile(); err != nil {
				t.Fatal(err)
			}
			if u := a.value(urlSetting); u.text != tt.url || u.from != tt.source {
				t.Errorf("the address is %+v", u)
			}
			if k := a.value(keySetting); k.text != tt.key || k.secret != (tt.key == "k") {
				t.Errorf("the key is %+v", k)
			}
		})
	}
}

// keyed is a server that accepts one API key, over TLS if there is an authority.
func keyed(t *testing.T, key string) *httptest.Server {
	t.Helper()
	return httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":{"code":"unauthorized","message":"no"}}`))
			return
		}
		_, _ = w.Write([]byte(`{"server":"s1","key":{"scopes":["read"]}}`))
	}))
}

// TestProfile: a profile that the command line has made reaches its broker, and no output has the
// key.
func TestProfile(t *testing.T) {
	dir, secret := t.TempDir(), "swb_a_key_that_is_secret"
	write(t, filepath.Join(dir, "key"), secret+"\n")
	authority := certtest.New(t)
	pair := authority.Pair("localhost")
	server := keyed(t, secret)
	server.TLS = tlsOf(t, pair.Cert, pair.Key)
	server.StartTLS()
	defer server.Close()
	environ := []string{"SWITCHBOARD_PROFILES=" + filepath.Join(dir, "profiles.yaml")}
	var all strings.Builder
	for _, tt := range []struct {
		line string
		code int
		want string
	}{
		{"profile list", exitOK, "0 profiles in "},
		{"profile set prod --url " + server.URL + " --key-file " + dir + "/key --ca-file " + authority.File, exitOK, "set: prod"},
		{"profile set dev --url http://127.0.0.1:1 --use", exitOK, "set: dev"},
		{"profile list", exitOK, "dev\tdefault\thttp://127.0.0.1:1\t\nprod\t\t" + server.URL},
		{"profile show prod", exitOK, "key file\t" + dir + "/key\n"},
		{"profile show --json", exitOK, `"name":"dev","default":true,"url":"http://127.0.0.1:1"`},
		{"self --profile prod", exitOK, "server\ts1\n"},
		{"self --profile prdo", exitUsage, `no profile "prdo"; did you mean prod?`},
		{"self --profile prod --ca-file " + dir + "/key", exitFailed, "holds no certificate"},
		{"self --profile prod --url " + strings.Replace(server.URL, "127.0.0.1", "localhost", 1) + " --ca-file " + authority.File, exitForbidden, "unauthorized"},
		{"profile use prod", exitOK, "default: prod"},
		{"self", exitOK, "server\ts1\n"},
		{"profile use x", exitUsage, `no profile "x"`},
		{"profile set prod --url http://me:" + secret + "@h", exitUsage, "must not hold a password"},
		{"profile set prod --url http://h --api-key " + secret, exitUsage, "holds no secrets"},
		{"profile remove prod", exitOK, "removed: prod"},
		{"profile show", exitUsage, "no profile is in use"},
	} {
		r := testbed.Execute(t, environ, binary, append(strings.Fields(tt.line), "--retry-for=0")...)
		all.WriteString(r.Stdout + r.Stderr)
		if r.Code != tt.code || !strings.Contains(r.Stdout+r.Stderr, tt.want) {
			t.Errorf("%s: %+v, want %d and %q", tt.line, r, tt.code, tt.want)
		}
	}
	if strings.Contains(all.String(), secret) {
		t.Error("the output has the key")
	}
	if text, err := os.ReadFile(filepath.Join(dir, "profiles.yaml")); err != nil || bytes.Contains(text, []byte(secret)) {
		t.Errorf("%s, %v", text, err)
	}
}

func tlsOf(t *testing.T, certificate, key string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}
