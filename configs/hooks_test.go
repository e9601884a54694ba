package configs

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"switchboard/internal/certtest"
)

func TestHookSettings(t *testing.T) {
	file := write(t, "secrets", "# two secrets for a rotation\n"+testSecret+"\n\n  "+testSecret+"2\n")
	b, err := LoadBroker(nil, []string{
		"SWITCHBOARD_HOOKS_CONNECT=https://a/?key=" + testSecret, "SWITCHBOARD_HOOKS_SECRETS_FILE=" + file, "SWITCHBOARD_HOOKS_TIMEOUT=3s",
	})
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.Options()
	if err != nil {
		t.Fatal(err)
	}
	h := o.Access.Hooks
	if h.Connect != "https://a/?key="+testSecret || h.Subscribe != "" || !slices.Equal(h.Secrets, []string{testSecret, testSecret + "2"}) || h.Timeout != 3*time.Second || h.Concurrency != 64 || !h.Enabled() {
		t.Errorf("the options are not those of the settings")
	}
	for want, environ := range map[string][]string{
		"keep one":      {"SWITCHBOARD_HOOKS_SECRETS=" + testSecret, "SWITCHBOARD_HOOKS_SECRETS_FILE=" + file},
		"hooks.timeout": {"SWITCHBOARD_HOOKS_TIMEOUT=6s"},
	} {
		if _, err := LoadBroker(nil, environ); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestRequestSettings(t *testing.T) {
	b, err := LoadBroker(nil, []string{"SWITCHBOARD_REQUESTS_URL=https://a/?key=" + testSecret, "SWITCHBOARD_REQUESTS_SECRETS=" + testSecret, "SWITCHBOARD_REQUESTS_TIMEOUT=3s"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.Options()
	r := o.Requests.Backend
	if err != nil || r.URL != "https://a/?key="+testSecret || !slices.Equal(r.Secrets, []string{testSecret}) || r.Timeout != 3*time.Second || r.Concurrency != 64 {
		t.Errorf("the options are not those of the settings: %v", err)
	}
	environ := []string{"SWITCHBOARD_REQUESTS_SECRETS=" + testSecret, "SWITCHBOARD_REQUESTS_SECRETS_FILE=secrets"}
	if _, err := LoadBroker(nil, environ); err == nil || !strings.Contains(err.Error(), "keep one") || strings.Contains(err.Error(), testSecret) {
		t.Errorf("two kinds of secrets: %v", err)
	}
}

func TestCertificateSettings(t *testing.T) {
	ca := certtest.New(t)
	pair := ca.Pair()
	good := []string{
		"SWITCHBOARD_TLS_CERT_FILE=" + pair.Cert, "SWITCHBOARD_TLS_KEY_FILE=" + pair.Key, "SWITCHBOARD_PEER_TLS_CERT_FILE=" + pair.Cert,
		"SWITCHBOARD_PEER_TLS_KEY_FILE=" + pair.Key, "SWITCHBOARD_PEER_TLS_CA_FILE=" + ca.File,
	}
	b, err := LoadBroker(nil, good)
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.Options()
	if err != nil || o.Listen.TLS == nil || o.Links.TLS == nil {
		t.Errorf("%v", err)
	}
	if o, err = DefaultBroker().Options(); err != nil || o.Listen.TLS != nil || o.Links.TLS != nil {
		t.Errorf("without certificates: %v", err)
	}
	for want, environ := range map[string][]string{
		"tls: a certificate":   good[:1],
		"peer_tls: cert_file,": good[2:4],
		"tls: open":            {"SWITCHBOARD_TLS_CERT_FILE=/nowhere", good[1]},
	} {
		b, err := LoadBroker(nil, environ)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Options(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, redis := range []RedisTLS{{}, {CAFile: ca.File}, {CertFile: pair.Cert, KeyFile: pair.Key}} {
		config, err := redis.ClientConfig(zerolog.Nop())
		if err != nil || (config == nil) != (redis == RedisTLS{}) || config != nil && len(config().Certificates) != min(1, len(redis.CertFile)) {
			t.Errorf("%+v: %v", redis, err)
		}
	}
	j, err := LoadJanitor(nil, append(good, "SWITCHBOARD_REDIS=rediss://a"))
	if err != nil {
		t.Fatal(err)
	}
	if files, err := j.PeerTLS.Files(); files == nil || err != nil {
		t.Errorf("the janitor's: %v", err)
	}
}
