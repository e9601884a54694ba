package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
)

// TestScopes checks the scope of each call. A new call must be added here.
func TestScopes(t *testing.T) {
	want := map[string]string{
		"POST /v1/push": "push", "POST /v1/push/batch": "push", "POST /v1/notify": "push", "POST /v1/reply": "push",
		"POST /v1/erase":   "push",
		"GET /v1/channels": "read", "GET /v1/channels/{channel}": "read", "GET /v1/channels/{channel}/history": "read",
		"GET /v1/channels/{channel}/presence": "read", "GET /v1/channels/{channel}/state": "read", "POST /v1/state/query": "read",
		"GET /v1/users": "read", "GET /v1/users/{user}": "read", "POST /v1/users/query": "read", "GET /v1/servers": "read",
		"GET /v1/clients/{client}": "read", "GET /v1/clients/{user}/{client}": "read",
		"GET /v1/clients/{client}/queue": "read", "GET /v1/clients/{user}/{client}/queue": "read",
		"GET /v1/self": "", "GET /v1/stats": "read", "GET /v1/health": "read", "POST /v1/check": "read",
		"GET /v1/webhooks": "read", "GET /v1/webhooks/dead": "read", "POST /v1/webhooks/dead/retry": "admin",
		"POST /v1/webhooks/dead/{event}/retry": "admin", "DELETE /v1/webhooks/dead/{event}": "admin",
		"POST /v1/users/{user}/revoke": "admin", "POST /v1/clients/{client}/revoke": "admin",
		"POST /v1/clients/{user}/{client}/revoke": "admin",
		"POST /v1/users/{user}/subscribe":         "admin", "POST /v1/clients/{client}/subscribe": "admin",
		"POST /v1/clients/{user}/{client}/subscribe": "admin",
		"POST /v1/users/{user}/unsubscribe":          "admin", "POST /v1/clients/{client}/unsubscribe": "admin",
		"POST /v1/clients/{user}/{client}/unsubscribe": "admin",
		"POST /v1/users/{user}/disconnect":             "admin", "POST /v1/clients/{client}/disconnect": "admin",
		"POST /v1/clients/{user}/{client}/disconnect": "admin",
	}
	var asked []string
	h := New(Options{Authorize: func(_, scope string) (*limit.SharedBucket, error) {
		asked = append(asked, scope)
		return nil, wire.Errorf(wire.Forbidden, "not with this key")
	}})
	for _, c := range (api{}).endpoints() {
		if scope, known := want[c.Pattern]; !known || c.Scope != scope {
			t.Errorf("%s needs %q, want %q", c.Pattern, c.Scope, want[c.Pattern])
		}
		delete(want, c.Pattern)
		method, path, _ := strings.Cut(c.Pattern, " ")
		w := httptest.NewRecorder()
		asked = nil
		h.ServeHTTP(w, httptest.NewRequest(method, strings.NewReplacer("{", "", "}", "").Replace(path), strings.NewReader("{}")))
		if w.Code != http.StatusForbidden || len(asked) != 1 || asked[0] != c.Scope {
			t.Errorf("%s: %d, asked for %q", c.Pattern, w.Code, asked)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	for _, c := range []struct{ method, path string }{{"GET", "/v1/push"}, {"POST", "/v1/nothing"}, {"GET", "/v1/"}} {
		asked = nil
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != http.StatusForbidden || len(asked) != 1 || asked[0] != "" {
			t.Errorf("%s %s: %d, asked for %q", c.method, c.path, w.Code, asked)
		}
	}
}

func TestNamespacesLimitBackendPushes(t *testing.T) {
	set, err := namespace.New([]namespace.Rule{{Name: "chat:*", Message: 5}})
	if err != nil {
		t.Fatal(err)
	}
	h := New(Options{
		Pusher: acceptAll{}, MaxMessage: 100, CallLimits: CallLimits{Batch: 10, Targets: 10}, CountPush: func(string, string) {},
		Authorize: func(string, string) (*limit.SharedBucket, error) { return nil, nil }, Namespaces: func() *namespace.Set { return set },
	})
	for body, want := range map[string]string{
		`{"channel":"chat:1","data":12345}`:       `200 "id"`,
		`{"channel":"chat:1","data":123456}`:      `413 at most 5`,
		`{"channel":"news","data":1}`:             `403 no namespace fits`,
		`{"channel":"chat:","data":1}`:            `403 nothing follows the prefix`,
		`{"channel":"chat:*","data":1}`:           `403 is a pattern`,
		`{"channels":["news","chat:1"],"data":1}`: `200 no namespace fits`,
		`{"all":true,"data":1234567}`:             `200 "id"`,
		`{"channel":"$all","data":1}`:             `403 a system channel`,
		`{"channel":"chat:\u0031","data":1}`:      `200 "id"`,
		`{"channel":"Chat:1","data":1}`:           `403 no namespace fits`,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/v1/push", strings.NewReader(body)))
		code, text, _ := strings.Cut(want, " ")
		if http.StatusText(w.Code) == "" || !strings.Contains(w.Body.String(), text) || code != strings.TrimSpace(w.Result().Status[:3]) {
			t.Errorf("%s: %d %s, want %s", body, w.Code, w.Body, want)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/channels/news/history", nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("history of a closed channel: %d", w.Code)
	}
}
