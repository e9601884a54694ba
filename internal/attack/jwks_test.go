//go:build long

package attack

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// TestForgedKeyIDsCauseFewFetches checks that tokens with many different unknown key ids do not
// make the broker fetch the issuer's key set again and again.
func TestForgedKeyIDsCauseFewFetches(t *testing.T) {
	i := newIssuer(t)
	var fetches atomic.Int32
	published := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetches.Add(1)
		n := base64.RawURLEncoding.EncodeToString(i.rsa.N.Bytes())
		e := base64.RawURLEncoding.EncodeToString(big.NewInt(int64(i.rsa.E)).Bytes())
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":"published","alg":"RS256","use":"sig","n":%q,"e":%q}]}`, n, e)
	}))
	defer published.Close()
	s := newScenario(t, i, "", "  jwks_url: "+published.URL)
	mallory := newIssuer(t).rsa
	s.attackRepeatedly(t, func(t *testing.T, s *scenario) {
		for k := range 100 {
			e := endpoints[k%len(endpoints)]
			a := s.open(t, e, "")
			a.send(connectAs("mallory", sign(header("RS256", fmt.Sprint("key-", k)), claims("admin", nil), jwt.SigningMethodRS256, mallory)))
			if got, want := a.refusal(), e.closing("error:unauthorized", "unauthorized", 4003); got != want {
				t.Fatalf("%s: got %q, want %q", e.name, got, want)
			}
		}
	})
	a := s.open(t, endpoints[0], "")
	a.send(connectAs("alice", sign(header("RS256", "published"), claims("alice", nil), jwt.SigningMethodRS256, i.rsa)))
	a.waitFor(t, "connected")
	// One at the start, one for the first unknown key, and one for each half minute since.
	if n := fetches.Load(); n > 5 {
		t.Errorf("the keys were fetched %d times", n)
	}
	s.finish(t)
}
