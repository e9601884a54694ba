package janitor

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchboard/internal/certfile"
	"switchboard/internal/certtest"
)

// TestHealthzTLS probes a server that requires client certificates, like the peer port of a broker.
func TestHealthzTLS(t *testing.T) {
	ours, theirs := certtest.New(t), certtest.New(t)
	open := func(a *certtest.Authority) *certfile.Files {
		t.Helper()
		pair := a.Pair("instance")
		f, err := certfile.Open(certfile.Options{Cert: pair.Cert, Key: pair.Key, CA: a.File, Name: "instance"})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"server":"b1"}`)
	}))
	s.Listener = tls.NewListener(s.Listener, open(ours).Mutual())
	s.Start()
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	probe := HealthzTLS(open(ours).Client)
	if !probe(t.Context(), host, "b1") || probe(t.Context(), host, "b2") {
		t.Error("the server is not found under its id, or is found under another id")
	}
	if HealthzTLS(open(theirs).Client)(t.Context(), host, "b1") || Healthz(t.Context(), host, "b1") {
		t.Error("a probe without a trusted certificate was answered")
	}
}
