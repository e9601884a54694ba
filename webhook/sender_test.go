package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"switchboard/internal/freeport"
)

const (
	secret    = "hunter2-hunter2-hunter2"
	oldSecret = "the previous secret"
)

// delivery is a POST that a receiver received.
type delivery struct {
	header http.Header
	body   string
}

// receiver starts a server that sends each delivery to the channel and then calls answer.
func receiver(t *testing.T, answer http.HandlerFunc) (url string, deliveries chan delivery) {
	t.Helper()
	deliveries = make(chan delivery, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		deliveries <- delivery{r.Header, string(body)}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, deliveries
}

func sender(t *testing.T, opts Options) *Sender {
	t.Helper()
	if opts.Secrets == nil {
		opts.Secrets = []string{secret}
	}
	s, err := New(opts)
	ok(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestSend(t *testing.T) {
	url, deliveries := receiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	s := sender(t, Options{URL: url + "/hooks?key=1", Secrets: []string{oldSecret, secret}, Agent: "switchboard/7"})
	ok(t, s.Send(t.Context(), [][]byte{[]byte(`{"id":"1"}`), []byte(`{"id":"2"}`)}))
	d := <-deliveries
	if d.body != `{"events":[{"id":"1"},{"id":"2"}]}` {
		t.Errorf("body %s", d.body)
	}
	if d.header.Get("Content-Type") != "application/json" || d.header.Get("User-Agent") != "switchboard/7" {
		t.Errorf("header %v", d.header)
	}
	for _, one := range []string{oldSecret, secret} {
		if err := Verify([]string{one}, d.header, []byte(d.body), 0); err != nil {
			t.Errorf("with secret %q: %v", one, err)
		}
	}
}

func TestAnswers(t *testing.T) {
	tests := []struct {
		status        int
		retryAfter    string
		want          *Refusal
		content, gone bool
	}{
		{200, "", nil, false, false},
		{204, "", nil, false, false},
		{301, "", &Refusal{301, 0}, false, false},
		{307, "", &Refusal{307, 0}, false, false},
		{400, "", &Refusal{400, 0}, true, false},
		{401, "", &Refusal{401, 0}, false, false},
		{404, "", &Refusal{404, 0}, false, false},
		{410, "", &Refusal{410, 0}, false, true},
		{413, "", &Refusal{413, 0}, true, false},
		{422, "", &Refusal{422, 0}, true, false},
		{429, "7", &Refusal{429, 7 * time.Second}, false, false},
		{500, "soon", &Refusal{500, 0}, false, false},
		{503, "99999999", &Refusal{503, time.Hour}, false, false},
		{503, "-1", &Refusal{503, 0}, false, false},
		{503, "Thu, 01 Jan 1970 00:00:00 GMT", &Refusal{503, 0}, false, false},
		{503, "Fri, 31 Dec 9999 23:59:59 GMT", &Refusal{503, time.Hour}, false, false},
	}
	for _, tt := range tests {
		url, deliveries := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", tt.retryAfter)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tt.status)
		})
		err := sender(t, Options{URL: url}).Send(t.Context(), [][]byte{[]byte("{}")})
		refusal, refused := errors.AsType[*Refusal](err)
		switch {
		case tt.want == nil && err != nil, tt.want != nil && (!refused || *refusal != *tt.want):
			t.Errorf("%d %q: %v", tt.status, tt.retryAfter, err)
		case refused && (refusal.Content() != tt.content || refusal.Gone() != tt.gone):
			t.Errorf("%d: content %v, gone %v", tt.status, refusal.Content(), refusal.Gone())
		}
		if len(deliveries) != 1 {
			t.Errorf("%d: %d requests, want 1 without following a redirect", tt.status, len(deliveries))
		}
	}
}

func TestNoAnswer(t *testing.T) {
	hang := make(chan struct{})
	url, _ := receiver(t, func(w http.ResponseWriter, _ *http.Request) { <-hang })
	defer close(hang)
	err := sender(t, Options{URL: url + "?token=" + secret, Timeout: 20 * time.Millisecond}).Send(t.Context(), nil)
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), secret) {
		t.Errorf("a receiver that hangs: %v", err)
	}
	unused, err := freeport.Address()
	ok(t, err)
	err = sender(t, Options{URL: "http://user:" + secret + "@" + unused + "/" + secret}).Send(t.Context(), nil)
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a port without a listener: %v", err)
	}
}

// TestEndlessAnswer checks that Send succeeds if the status is 200, although the body has no end.
func TestEndlessAnswer(t *testing.T) {
	url, _ := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ok(t, sender(t, Options{URL: url, Timeout: 20 * time.Millisecond}).Send(t.Context(), nil))
	url, _ = receiver(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	ok(t, sender(t, Options{URL: url}).Send(t.Context(), nil))
}

func TestTLS(t *testing.T) {
	silent := log.New(io.Discard, "", 0) // discards the TLS errors that the test causes
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = silent
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	ok(t, sender(t, Options{URL: s.URL, TLS: &tls.Config{RootCAs: roots}}).Send(t.Context(), nil))
	if err := sender(t, Options{URL: s.URL}).Send(t.Context(), nil); err == nil {
		t.Error("a certificate of an unknown authority is trusted")
	}
	old := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	old.Config.ErrorLog = silent
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	defer old.Close()
	roots.AddCert(old.Certificate())
	if err := sender(t, Options{URL: old.URL, TLS: &tls.Config{RootCAs: roots}}).Send(t.Context(), nil); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}

func TestBadOptions(t *testing.T) {
	for _, tt := range []struct {
		opts Options
		want string
	}{
		{Options{Secrets: []string{secret}}, "URL"},
		{Options{URL: "ftp://" + secret, Secrets: []string{secret}}, "URL"},
		{Options{URL: "/" + secret, Secrets: []string{secret}}, "URL"},
		{Options{URL: "http://h:x" + secret, Secrets: []string{secret}}, "URL"},
		{Options{URL: "http://h", Secrets: []string{secret}}, "the scheme must be https"},
		{Options{URL: "http://10.0.0.1:80", Secrets: []string{secret}}, "the scheme must be https"},
		{Options{URL: "https://h"}, "secret"},
		{Options{URL: "https://h", Secrets: []string{secret, secret[:15]}}, "secret 2 of 2: the secret has less than 16 bytes"},
		{Options{URL: "https://h", Secrets: []string{secret + "\n"}}, "secret 1 of 1"},
		{Options{URL: "https://h", Secrets: make([]string, 9)}, "9 secrets"},
		{Options{URL: "https://h", Secrets: []string{secret}, Timeout: -1}, "Timeout"},
	} {
		if _, err := New(tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%+v: %v, want %q", tt.opts, err, tt.want)
		}
	}
}
