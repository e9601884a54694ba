package hook

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/wire"
	"switchboard/webhook"
)

func newRequests(t *testing.T, answer http.HandlerFunc) *Requests {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	r, err := NewRequests(RequestOptions{URL: s.URL + "/?key=" + secret, Secrets: []string{oldSecret, secret}, Timeout: time.Minute, MaxAnswer: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// TestRequestAnswers checks the signature of a request, and which answers are passed on.
func TestRequestAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		status  int
		text    string
		want    Outcome
		data    string
		refusal string // what the client receives, with Denied
	}{
		"JSON":             {200, `{ "a": [1] }`, Answered, `{"a":[1]}`, ""},
		"created":          {201, `1`, Answered, `1`, ""},
		"no content":       {204, ``, Answered, `null`, ""},
		"refused":          {403, `{"error":{"code":"forbidden","message":"not\nyou"}}`, Denied, "", "forbidden: not you"},
		"its own code":     {409, `{"error":{"code":"sold_out","message":"sorry","data":{"left":0}}}`, Denied, "", "sold_out: sorry"},
		"no body":          {403, ``, Failed, "", ""},
		"a bad code":       {403, `{"error":{"code":"not you"}}`, Failed, "", ""},
		"no code":          {404, `{"error":"no"}`, Failed, "", ""},
		"broken, with one": {500, `{"error":{"code":"forbidden"}}`, Failed, "", ""},
		"moved":            {307, `1`, Failed, "", ""},
		"empty":            {200, ``, Malformed, "", ""},
		"no JSON":          {200, `<html>`, Malformed, "", ""},
		"too large":        {200, `"` + strings.Repeat("x", 1000) + `"`, Malformed, "", ""},
	} {
		var calls atomic.Int64
		r := newRequests(t, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			body, _ := io.ReadAll(r.Body)
			for _, s := range []string{oldSecret, secret} {
				if err := webhook.Verify([]string{s}, r.Header, body, 0); err != nil || string(body) != `{"ref":1}` {
					t.Errorf("%s: %v", body, err)
				}
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.text)
		})
		data, outcome, err := r.Ask(t.Context(), []byte(`{"ref":1}`), time.Now())
		if outcome != tt.want || string(data) != tt.data || (err == nil) != (outcome == Answered) || calls.Load() != 1 {
			t.Errorf("%s: %s, %s, %v, %d calls", name, outcome, data, err, calls.Load())
		}
		if refusal, ok := errors.AsType[*wire.Error](err); ok != (tt.refusal != "") || ok && refusal.Error() != tt.refusal {
			t.Errorf("%s: refused as %v", name, err)
		}
		if _, detailed := errors.AsType[*wire.DetailedError](err); detailed != strings.Contains(tt.text, "data") {
			t.Errorf("%s: %#v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v contains the URL", name, err)
		}
	}
}

// TestRequestFails checks a backend that is down or too slow.
func TestRequestFails(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	r, err := NewRequests(RequestOptions{URL: down.URL + "?key=" + secret, Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	if _, outcome, err := r.Ask(t.Context(), nil, time.Now()); outcome != Failed || strings.Contains(err.Error(), secret) {
		t.Errorf("down: %s, %v", outcome, err)
	}
	slow := newRequests(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	})
	slow.opts.Timeout = 100 * time.Millisecond
	if _, outcome, err := slow.Ask(t.Context(), nil, time.Now()); outcome != Late || err == nil {
		t.Errorf("slow: %s, %v", outcome, err)
	}
	if _, outcome, err := slow.Ask(t.Context(), nil, time.Now().Add(-time.Hour)); outcome != Late || err == nil {
		t.Errorf("it waited for too long: %s, %v", outcome, err)
	}
}

func TestRequestOptions(t *testing.T) {
	for want, o := range map[string]RequestOptions{
		"":                                  {},
		"requests.url: ":                    {URL: "http://backend.example.com/" + secret, Secrets: []string{secret}},
		"requests.secrets: none":            {URL: "https://backend.example.com"},
		"requests.secrets: secret 1 of 1":   {URL: "https://backend.example.com", Secrets: []string{"short"}},
		"requests: timeout and concurrency": {URL: "https://backend.example.com", Secrets: []string{secret}, Timeout: -1},
	} {
		err := o.Validate()
		if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), secret)) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
