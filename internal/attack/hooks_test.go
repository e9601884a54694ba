//go:build long

package attack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// ambiguousAnswers are answers that programs read differently. None may admit a client.
var ambiguousAnswers = []string{
	`{"allow":false,"allow":true}`, `{"allow":true,"allow":false}`, `{"ALLOW":true}`, `{"Allow":true}`, `{"allow":true,"Allow":false}`,
	`{"allow":false,"all\u006fw":true}`, `{"allow":"true"}`, `{"allow":1}`, `[{"allow":true}]`, `{"allow":true}{"allow":false}`, `{"allow":true},`,
	`{"a":{"allow":true}}`, `{"allow":true`, `{"allow" true}`, "\xef\xbb\xbf" + `{"allow":true}`, `{"allow":true,"info":{"a":1},"INFO":{"admin":1}}`,
}

// TestAmbiguousHookAnswers checks that only a clear answer of the backend admits a client. An
// attacker may have a part in what the backend writes.
func TestAmbiguousHookAnswers(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question struct{ User string }
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			t.Error(err)
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(question.User, "mallory-")); err == nil {
			fmt.Fprint(w, ambiguousAnswers[n])
			return
		}
		fmt.Fprint(w, `{"allow":true}`)
	}))
	defer backend.Close()
	s := newScenario(t, newIssuer(t), "hooks: {connect: "+backend.URL+", secrets: [the-secret-of-the-hooks]}", "")
	s.attackRepeatedly(t, func(t *testing.T, s *scenario) {
		for n, answer := range ambiguousAnswers {
			e := endpoints[n%len(endpoints)]
			a := s.open(t, e, "")
			a.send(connectAs("phone", s.token(fmt.Sprint("mallory-", n))))
			if got, want := a.refusal(), e.closing("error:unavailable", "overloaded", 4009); got != want {
				t.Errorf("%s: %s: got %q, want %q", e.name, answer, got, want)
			}
		}
	})
	s.finish(t)
}
