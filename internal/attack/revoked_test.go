//go:build long

package attack

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// revokedTokens uses tokens that the backend has revoked, at the same time and later. A thief has
// copies of the tokens of a user that has new ones.
func revokedTokens(t *testing.T, s *scenario) {
	user := fmt.Sprint("victim-", s.clientCount.Add(1))
	stolen := []string{
		s.tokenWith(user, map[string]any{"iat": time.Now().Add(-time.Minute).Unix()}), s.token(user), // without iat
		s.tokenWith(user, map[string]any{"iat": 0}),
	}
	owner := s.open(t, endpoints[0], "")
	owner.send(connectAs("phone", s.tokenWith(user, map[string]any{"iat": float64(time.Now().UnixMilli()) / 1000})))
	owner.waitFor(t, "connected")
	var thieves []*attacker
	for i, e := range endpoints {
		a := s.open(t, e, "")
		a.send(connectAs(fmt.Sprint("thief-", i), stolen[i%len(stolen)]))
		a.waitFor(t, "connected")
		thieves = append(thieves, a)
	}
	before := fmt.Sprintf(`{"before":%d}`, time.Now().Add(-30*time.Second).UnixMilli())
	status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/users/"+user+"/revoke", before)
	if status != http.StatusOK || !strings.Contains(answer, fmt.Sprintf(`"disconnected":%d`, len(thieves))) {
		t.Errorf("revoke: %d %s", status, answer)
	}
	for i, e := range endpoints {
		if got, want := thieves[i].outcome(), e.closing("", "expired", 4004); got != want {
			t.Errorf("%s: got %q, want %q", e.name, got, want)
		}
		for n, token := range stolen {
			for _, client := range []string{"phone", fmt.Sprint("again-", n)} {
				a := s.open(t, e, "")
				a.send(connectAs(client, token))
				if got, want := a.refusal(), e.closing("error:unauthorized", "expired", 4004); got != want {
					t.Errorf("%s: token %d as %s: got %q, want %q", e.name, n, client, got, want)
				}
				_ = a.Close()
			}
		}
	}
	owner.send(fmt.Sprintf(`{"type":"refresh","token":%q}`, stolen[0]))
	if got := owner.reply(); got != "error:unauthorized" {
		t.Errorf("refresh: got %q", got)
	}
	owner.send(`{"type":"ping"}`)
	owner.waitFor(t, "pong") // its token is newer
	_ = owner.Close()
}
