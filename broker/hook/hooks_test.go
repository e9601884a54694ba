package hook

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret    = "hunter2-hunter2-hunter2"
	oldSecret = "the secret before" // still in use
)

func newHooks(t *testing.T, answer http.HandlerFunc, change ...func(*Options)) *Hooks {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	o := Options{Connect: s.URL + "/connect?key=" + secret, Subscribe: s.URL + "/subscribe", Secrets: []string{oldSecret, secret}, Timeout: 10 * time.Second}
	for _, f := range change {
		f(&o)
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func TestQuestion(t *testing.T) {
	h := newHooks(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for _, s := range []string{oldSecret, secret} {
			if err := webhook.Verify([]string{s}, r.Header, body, 0); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		}
		if len(r.Header["Idempotency-Key"]) > 0 {
			t.Error("an Idempotency-Key is sent")
		}
		want := `{"hook":"subscribe","client":"phone","user":"alice","address":"192.0.2.1:7","info":{"a":1},"channel":"chat:1"}`
		if r.URL.Path != "/subscribe" || string(body) != want {
			t.Errorf("%s: %s", r.URL.Path, body)
		}
		_, _ = io.WriteString(w, `{"allow":true}`)
	})
	_, outcome, err := h.Ask(t.Context(), Question{
		Hook: Subscribe, Client: "phone", User: "alice", Address: "192.0.2.1:7", Info: json.RawMessage(`{"a":1}`), Channel: "chat:1", Since: time.Now(),
	})
	if outcome != Allowed || err != nil {
		t.Errorf("%s, %v", outcome, err)
	}
}

// TestAnswers checks that only status 200 with "allow":true allows.
func TestAnswers(t *testing.T) {
	long := strings.Repeat("é", maxReason)
	for name, tt := range map[string]struct {
		kind   Kind
		status int
		text   string
		want   Outcome
		answer Answer
	}{
		"yes":                     {Connect, 200, `{"allow":true}`, Allowed, Answer{Allow: true}},
		"yes, with a user":        {Connect, 200, `{"allow":true,"user":"bob","info":{ "a": 1 },"more":2}`, Allowed, Answer{Allow: true, User: "bob", Info: json.RawMessage(`{"a":1}`)}},
		"no":                      {Connect, 200, `{"allow":false,"reason":"banned\r\nfor good"}`, Denied, Answer{Reason: "banned  for good"}},
		"no, user is ignored":     {Subscribe, 200, `{"allow":false,"user":"bob"}`, Denied, Answer{}},
		"no, long reason":         {Subscribe, 200, `{"allow":false,"reason":"` + long + `"}`, Denied, Answer{Reason: long[:maxReason] + "…"}},
		"nothing":                 {Connect, 200, ``, Malformed, Answer{}},
		"an object without allow": {Connect, 200, `{}`, Malformed, Answer{}},
		"null":                    {Connect, 200, `{"allow":null}`, Malformed, Answer{}},
		"a text":                  {Connect, 200, `{"allow":"true"}`, Malformed, Answer{}},
		"a number":                {Connect, 200, `{"allow":1}`, Malformed, Answer{}},
		"a list":                  {Connect, 200, `[{"allow":true}]`, Malformed, Answer{}},
		"cut off":                 {Connect, 200, `{"allow":true`, Malformed, Answer{}},
		"twice":                   {Connect, 200, `{"allow":false,"allow":true}`, Malformed, Answer{}},
		"twice, escaped":          {Connect, 200, `{"allow":false,"all\u006fw":true}`, Malformed, Answer{}},
		"upper case":              {Connect, 200, `{"ALLOW":true}`, Malformed, Answer{}},
		"two cases":               {Connect, 200, `{"Allow":false,"allow":true}`, Malformed, Answer{}},
		"another case of user":    {Connect, 200, `{"allow":true,"User":"bob"}`, Malformed, Answer{}},
		"two":                     {Connect, 200, `{"allow":true}{"allow":true}`, Malformed, Answer{}},
		"a bad user":              {Connect, 200, `{"allow":true,"user":"a b"}`, Malformed, Answer{}},
		"a bad info":              {Connect, 200, `{"allow":true,"info":[1]}`, Malformed, Answer{}},
		"info from subscribe":     {Subscribe, 200, `{"allow":true,"info":{}}`, Malformed, Answer{}},
		"user from subscribe":     {Subscribe, 200, `{"allow":true,"user":"bob"}`, Malformed, Answer{}},
		"endless":                 {Connect, 200, `{"allow":true}` + strings.Repeat(" ", maxAnswer), Malformed, Answer{}},
		"no content":              {Connect, 204, ``, Failed, Answer{}},
		"created":                 {Connect, 201, `{"allow":true}`, Failed, Answer{}},
		"moved":                   {Connect, 307, `{"allow":true}`, Failed, Answer{}},
		"forbidden":               {Connect, 403, `{"allow":true}`, Failed, Answer{}},
		"broken":                  {Connect, 500, `{"allow":true}`, Failed, Answer{}},
	} {
		var calls atomic.Int64
		h := newHooks(t, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.text)
		})
		a, outcome, err := h.Ask(t.Context(), Question{Hook: tt.kind, Since: time.Now()})
		if outcome != tt.want || (err == nil) != (outcome == Allowed || outcome == Denied) || calls.Load() != 1 {
			t.Errorf("%s: %s, %v, %d calls", name, outcome, err, calls.Load())
		}
		if a.Allow != tt.answer.Allow || a.User != tt.answer.User || a.Reason != tt.answer.Reason || string(a.Info) != string(tt.answer.Info) {
			t.Errorf("%s: %+v", name, a)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v contains the URL", name, err)
		}
	}
}

func TestLate(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	var calls atomic.Int64
	h := newHooks(t, func(http.ResponseWriter, *http.Request) { calls.Add(1); <-hang }, func(o *Options) { o.Timeout = 20 * time.Millisecond })
	if _, outcome, err := h.Ask(t.Context(), Question{Hook: Connect, Since: time.Now()}); outcome != Late || err == nil {
		t.Errorf("a backend that hangs: %s, %v", outcome, err)
	}
	before := calls.Load()
	if _, outcome, err := h.Ask(t.Context(), Question{Hook: Connect, Since: time.Now().Add(-time.Hour)}); outcome != Late || err == nil {
		t.Errorf("a question older than the timeout: %s, %v", outcome, err)
	}
	if calls.Load() != before {
		t.Error("a question older than the timeout was sent")
	}
}

func TestConnectionRefused(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	url := s.URL
	s.Close()
	h := newHooks(t, http.NotFound, func(o *Options) { o.Connect = url + "/?key=" + secret })
	_, outcome, err := h.Ask(t.Context(), Question{Hook: Connect, Since: time.Now()})
	if outcome != Failed || err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("%s, %v", outcome, err)
	}
}

// TestConnectionIsReused checks that questions one after the other use one connection.
func TestConnectionIsReused(t *testing.T) {
	var seen sync.Map
	h := newHooks(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.RemoteAddr, true)
		_, _ = io.WriteString(w, `{"allow":true}`)
	})
	for range 20 {
		if _, outcome, err := h.Ask(t.Context(), Question{Hook: Connect, Since: time.Now()}); outcome != Allowed {
			t.Fatal(outcome, err)
		}
	}
	connections := 0
	for range seen.Range {
		connections++
	}
	if connections != 1 {
		t.Errorf("%d connections", connections)
	}
}

func TestNew(t *testing.T) {
	for want, o := range map[string]Options{
		"hooks.connect":    {Connect: "ftp://" + secret, Secrets: []string{secret}},
		"hooks.subscribe":  {Subscribe: "http://", Secrets: []string{secret}},
		"must be https":    {Connect: "http://a", Secrets: []string{secret}},
		"hooks.secrets: n": {Connect: "https://a"},
		"white space":      {Connect: "https://a", Secrets: []string{" " + secret}},
		"than 16 bytes":    {Connect: "https://a", Secrets: []string{secret, secret[:15]}},
		"below zero":       {Connect: "http://127.0.0.1", Secrets: []string{secret}, Timeout: -1},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
