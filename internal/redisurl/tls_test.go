package redisurl

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"switchboard/internal/certfile"
	"switchboard/internal/certtest"
	"switchboard/internal/freeport"
	"switchboard/internal/redistest"
)

// TestTLS connects to a Redis that requires client certificates, of an authority unknown to the
// system.
func TestTLS(t *testing.T) {
	ours, theirs := certtest.New(t), certtest.New(t)
	server, client, stranger := ours.Pair(), ours.Pair(), theirs.Pair()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	redistest.Start(t, "--tls-port", fmt.Sprint(port), "--tls-cert-file", server.Cert, "--tls-key-file", server.Key,
		"--tls-ca-cert-file", ours.File, "--tls-auth-clients", "yes")
	url := fmt.Sprintf("rediss://127.0.0.1:%d", port)
	ping := func(o *certfile.Options) error {
		var config func() *tls.Config
		if o != nil {
			files, err := certfile.Open(*o)
			if err != nil {
				t.Fatal(err)
			}
			config = func() *tls.Config { return files.Fresh(zerolog.Nop()) }
		}
		c, _, err := OpenTLS(url, config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.Ping(t.Context()).Err()
	}
	if err := ping(&certfile.Options{Cert: client.Cert, Key: client.Key, CA: ours.File}); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	for name, o := range map[string]*certfile.Options{
		"no options":                      nil,
		"no certificate":                  {CA: ours.File},
		"unknown authority of the client": {Cert: stranger.Cert, Key: stranger.Key, CA: ours.File},
		"unknown authority of Redis":      {Cert: client.Cert, Key: client.Key, CA: theirs.File},
		"wrong name of Redis":             {Cert: client.Cert, Key: client.Key, CA: ours.File, Name: "redis.example"},
	} {
		if ping(o) == nil {
			t.Errorf("%s: the connection was accepted", name)
		}
	}
}

func TestOpenTLSRefuses(t *testing.T) {
	config := func() *tls.Config { return &tls.Config{} }
	for url, want := range map[string]string{"redis://a": "scheme:", "redis-cluster://a": "scheme:", "rediss://a?skip_verify=true": "query:"} {
		if _, _, err := OpenTLS(url, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestSuites checks that Open restricts TLS versions and cipher suites.
func TestSuites(t *testing.T) {
	for url, encrypted := range map[string]bool{"redis://h": false, "rediss://h": true} {
		client, _, err := Open(url)
		if err != nil {
			t.Fatal(err)
		}
		config := client.(*redis.Client).Options().TLSConfig
		if (config != nil) != encrypted || encrypted && (len(config.CipherSuites) == 0 || config.MinVersion != tls.VersionTLS12) {
			t.Errorf("%s: %+v", url, config)
		}
		_ = client.Close()
	}
}
