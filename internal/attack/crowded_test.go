package attack

import (
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/internal/await"
)

const (
	places    = 300 // of all connections
	ofAddress = 60  // of those from one address
)

// TestTheBrokerStandsWhileItIsFull has a broker with few places, and somebody who takes them.
func TestTheBrokerStandsWhileItIsFull(t *testing.T) {
	s := begin(t, newIssuer(t), fmt.Sprintf("max_connections: %d\nlimits: {address_connections: %d}", places, ofAddress), "")
	t.Run("from everywhere", func(t *testing.T) { everyPlace(t, s) })
	t.Run("by strangers", func(t *testing.T) { strangersEverywhere(t, s) })
	t.Run("from one address", func(t *testing.T) { oneAddress(t, s) })
	s.end(t)
}

// oneAddress takes all places that an address has, on both ports, and asks for more.
func oneAddress(t *testing.T, s *siege) {
	const greed = 4 * ofAddress
	from := net.IPv4(127, 66, 6, 6)
	for i := range greed {
		onHTTP := i%2 == 0
		a, err := s.dial(onHTTP, from)
		if err == nil && i < ofAddress {
			err = a.upgrade("", "") // it is answered, so it is counted
		}
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if i < ofAddress {
			continue
		}
		want := "closing:overloaded"
		if onHTTP {
			want = "HTTP 429"
		}
		got := a.verdict()
		_ = a.Close() // few are told why at a time
		if got != want {
			t.Errorf("connection %d, HTTP port %v: told %q, want %q", i, onHTTP, got, want)
		}
	}
	s.holds(t)
}

// everyPlace takes all that there are. Nobody comes in any more, but who is in notices nothing, and the backend
// goes on: it has some places of its own.
func everyPlace(t *testing.T, s *siege) {
	before := s.descriptors(t)
	var held []*assailant
	take := func(onHTTP bool) *assailant {
		a, err := s.dial(onHTTP, net.IPv4(127, 77, 0, byte(1+len(held)%200)))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, a)
		return a
	}
	taken := places - len(ways) - 4 // but for the crowd, and the connections of its backend
	for range taken {
		if err := take(false).upgrade("", ""); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 { // and what its backend has left
		take(false)
	}
	if got := take(false).verdict(); got != "closing:overloaded" {
		t.Errorf("behind the last place on the TCP port: told %q", got)
	}
	late := take(true)
	if _, err := io.WriteString(late, strings.Replace(handshake("", ""), "Connection: Upgrade", "Connection: Upgrade, close", 1)); err != nil {
		t.Fatal(err)
	}
	if got := late.verdict(); got != "HTTP 503" {
		t.Errorf("behind the last place on the HTTP port: told %q", got)
	}
	s.crowd.advance(s.ctx, t, atLeast)
	s.client.CloseIdleConnections()
	if status, answer := s.call(s.ctx, t, http.MethodGet, "/v1/servers", ""); status != http.StatusOK {
		t.Errorf("the backend, on a new connection: %d %s", status, answer)
	}
	for _, a := range held {
		_ = a.Close()
	}
	await.NoError(s.ctx, t, "there is room again", func() error {
		if now := s.descriptors(t); now > before+places/10 {
			return fmt.Errorf("%d descriptors, %d before", now, before)
		}
		return nil
	})
	s.holds(t)
}

// TestForgedKeyIDsCauseNoFetches has the keys of tokens published, and tokens that name others without end: the issuer must
// not hear of it.
func TestForgedKeyIDsCauseNoFetches(t *testing.T) {
	i := newIssuer(t)
	var fetches atomic.Int32
	published := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetches.Add(1)
		n := base64.RawURLEncoding.EncodeToString(i.rsa.N.Bytes())
		e := base64.RawURLEncoding.EncodeToString(big.NewInt(int64(i.rsa.E)).Bytes())
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":"published","alg":"RS256","use":"sig","n":%q,"e":%q}]}`, n, e)
	}))
	defer published.Close()
	s := begin(t, i, "", "  jwks_url: "+published.URL)
	mallory := newIssuer(t).rsa
	s.under(t, func(t *testing.T, s *siege) {
		for k := range 100 {
			e := entrances[k%len(entrances)]
			a := s.enter(t, e, "")
			a.say(connectAs("mallory", seal(header("RS256", fmt.Sprint("key-", k)), claims("admin", nil), jwt.SigningMethodRS256, mallory)))
			if got, want := a.refusal(), e.closing("error:unauthorized", "unauthorized", 4003); got != want {
				t.Fatalf("%s: told %q, want %q", e.name, got, want)
			}
		}
	})
	a := s.enter(t, entrances[0], "")
	a.say(connectAs("alice", seal(header("RS256", "published"), claims("alice", nil), jwt.SigningMethodRS256, i.rsa)))
	a.until(t, "connected")
	// One at the start, one for the first unknown key, and one for each half minute since.
	if n := fetches.Load(); n > 5 {
		t.Errorf("the keys were fetched %d times", n)
	}
	s.end(t)
}
