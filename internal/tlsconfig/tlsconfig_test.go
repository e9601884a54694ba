package tlsconfig

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"
)

func TestStrict(t *testing.T) {
	if c := Strict(nil); c.MinVersion != tls.VersionTLS12 || len(c.CipherSuites) == 0 {
		t.Errorf("%+v", c)
	}
	given := &tls.Config{ServerName: "a", MinVersion: tls.VersionTLS13}
	if c := Strict(given); c.ServerName != "a" || c.MinVersion != tls.VersionTLS13 || given.CipherSuites != nil {
		t.Errorf("%+v of %+v", c, given)
	}
}

// TestSuites checks that aead holds exactly the TLS 1.2 suites of Go that use ECDHE and an AEAD.
func TestSuites(t *testing.T) {
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if slices.Contains(s.SupportedVersions, tls.VersionTLS13) {
			continue
		}
		want := strings.Contains(s.Name, "_ECDHE_") && (strings.Contains(s.Name, "_GCM_") || strings.Contains(s.Name, "_POLY1305_"))
		if slices.Contains(aead, s.ID) != want {
			t.Errorf("%s: in aead %v, want %v", s.Name, !want, want)
		}
	}
}
