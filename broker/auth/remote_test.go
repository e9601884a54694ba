package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"
)

const keysURL = "https://issuer.example/keys?secret=hunter2"

// endpoint is a RoundTripper that answers as the issuer.
type endpoint struct {
	mu     sync.Mutex // guards the fields below
	set    string     // "" means a network error
	status int        // 0 for 200
	hang   bool
	calls  int
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	e.calls++
	set, status, hang := e.set, e.status, e.hang
	e.mu.Unlock()
	if hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if set == "" {
		return nil, errors.New("connection refused")
	}
	if status == 0 || r.URL.String() != keysURL {
		status = 200
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Request: r,
		Header: http.Header{"Location": {"http://elsewhere.example/keys"}}, Body: io.NopCloser(strings.NewReader(set)),
	}, nil
}

func (e *endpoint) serve(keys ...string) { e.setResponse(`{"keys":[` + strings.Join(keys, ",") + `]}`) }

func (e *endpoint) fail() { e.setResponse("") }

func (e *endpoint) setResponse(set string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set = set
}

func (e *endpoint) called() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls
}

// startFetching returns Tokens that fetch from e. It must be called inside synctest.Test.
func startFetching(t *testing.T, e *endpoint, log zerolog.Logger) *Tokens {
	t.Helper()
	r, err := NewRemote(RemoteOptions{URL: keysURL, Transport: e})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := NewTokens(Options{Remote: r})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx, log, func(bool) {})
	}()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return tokens
}

// advance waits d, in the time of synctest.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestRemoteKeys(t *testing.T) {
	s := newSigners(t)
	claims := jwt.MapClaims{"sub": "alice"}
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		e.serve(
			publicJWK("r", &s.rsa.PublicKey, ""), publicJWK("p", &s.otherRSA.PublicKey, `,"alg":"PS256","use":"sig"`),
			publicJWK("e", &s.ec.PublicKey, ""), publicJWK("e3", &s.ec384.PublicKey, `,"key_ops":["verify"]`), publicJWK("d", s.ed.Public(), ""),
			publicJWK("enc", &s.rsa.PublicKey, `,"use":"enc"`), publicJWK("wrap", &s.rsa.PublicKey, `,"key_ops":["encrypt"]`),
			`{"kty":"oct","kid":"h","k":"`+base64.RawURLEncoding.EncodeToString(secret)+`"}`, `{"kty":"PQ","kid":"q"}`, `7`,
		)
		tokens := startFetching(t, e, zerolog.Nop())
		if n, age := tokens.Remote().Keys(); n != 5 || age != 0 || tokens.Unready() != "" || tokens.Open() {
			t.Errorf("%d keys of age %v, unready %q", n, age, tokens.Unready())
		}
		for name, c := range map[string]struct {
			token string
			ok    bool
		}{
			"RSA":   {signAs(t, "r", jwt.SigningMethodRS256, s.rsa, claims), true},
			"PS256": {signAs(t, "p", jwt.SigningMethodPS256, s.otherRSA, claims), true},
			"P-256": {signAs(t, "e", jwt.SigningMethodES256, s.ec, claims), true},
			"P-384": {signAs(t, "e3", jwt.SigningMethodES384, s.ec384, claims), true},
			"Ed":    {signAs(t, "d", jwt.SigningMethodEdDSA, s.ed, claims), true},

			"for encryption":         {signAs(t, "enc", jwt.SigningMethodRS256, s.rsa, claims), false},
			"for wrapping":           {signAs(t, "wrap", jwt.SigningMethodRS256, s.rsa, claims), false},
			"a symmetric one":        {signAs(t, "h", jwt.SigningMethodHS256, secret, claims), false},
			"another's name":         {signAs(t, "p", jwt.SigningMethodRS256, s.rsa, claims), false},
			"no name":                {sign(t, jwt.SigningMethodRS256, s.rsa, claims), false},
			"public key as a secret": {signAs(t, "r", jwt.SigningMethodHS256, s.rsaPEM, claims), false},
			"none":                   {signAs(t, "r", jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims), false},
		} {
			_, err := tokens.Verify(c.token)
			if c.ok != (err == nil) || err != nil && !errors.Is(err, ErrBadToken) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestRotation adds a key, removes the old one, and makes the endpoint fail.
func TestRotation(t *testing.T) {
	s := newSigners(t)
	claims := jwt.MapClaims{"sub": "alice"}
	first, second := publicJWK("1", &s.rsa.PublicKey, ""), publicJWK("2", &s.otherRSA.PublicKey, "")
	byFirst := signAs(t, "1", jwt.SigningMethodRS256, s.rsa, claims)
	bySecond := signAs(t, "2", jwt.SigningMethodRS256, s.otherRSA, claims)
	invented := signAs(t, "3", jwt.SigningMethodRS256, s.rsa, claims)
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		tokens := startFetching(t, e, zerolog.Nop())
		expect := func(when, token string, want error) {
			t.Helper()
			if _, err := tokens.Verify(token); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", when, err, want)
			}
		}
		expect("before the first fetch", byFirst, ErrUnready)
		if !strings.Contains(tokens.Unready(), "not be fetched yet") {
			t.Errorf("unready %q", tokens.Unready())
		}
		e.serve(first)
		advance(5 * time.Second) // the retry after a failure
		expect("after the first fetch", byFirst, nil)

		advance(missFetchInterval) // the first token caused a fetch
		e.serve(first, second)
		before := e.called()
		expect("a new key", bySecond, nil) // it causes a fetch
		expect("an invented key, right after", invented, ErrBadToken)
		if n := e.called() - before; n != 1 {
			t.Errorf("%d fetches, want 1", n)
		}
		for range 100 {
			expect("more invented keys", invented, ErrBadToken)
		}
		advance(missFetchInterval)
		expect("an invented key, later", invented, ErrBadToken)
		if n := e.called() - before; n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}

		e.serve(second)
		advance(11 * time.Minute) // the interval and its jitter
		expect("removed, within the grace period", byFirst, nil)
		advance(11 * time.Minute)
		expect("removed, after the grace period", byFirst, ErrBadToken)
		expect("a remaining key", bySecond, nil)

		e.fail()
		advance(23 * time.Hour)
		expect("the endpoint fails", bySecond, nil)
		expect("an unknown key while the endpoint fails", byFirst, ErrUnready)
		advance(2 * time.Hour)
		expect("the endpoint fails for longer than Stale", bySecond, ErrUnready)
		if !strings.Contains(tokens.Unready(), "for too long") {
			t.Errorf("unready %q", tokens.Unready())
		}
		e.serve(first)
		advance(2 * time.Minute)
		expect("the endpoint works again, with another key", byFirst, nil)
		expect("the grace period of the replaced key begins now", bySecond, nil)
	})
}

// TestInvalidSetKeepsKeys checks that an invalid or empty set is a failed fetch, and does not
// revoke the known keys.
func TestInvalidSetKeepsKeys(t *testing.T) {
	s := newSigners(t)
	token := signAs(t, "1", jwt.SigningMethodRS256, s.rsa, jwt.MapClaims{"sub": "alice"})
	huge := `{"keys":[` + publicJWK("2", &s.otherRSA.PublicKey, "") + `]}` + strings.Repeat(" ", maxKeySet)
	many := `{"keys":[` + strings.Repeat("{},", maxKeys) + `{}]}`
	for name, set := range map[string]string{
		"empty": `{"keys":[]}`, "no keys": `{}`, "null": `null`, "HTML": `<html>`, "huge": huge, "many": many, "unusable": `{"keys":[{"kty":"PQ"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &endpoint{}
				e.serve(publicJWK("1", &s.rsa.PublicKey, ""))
				tokens := startFetching(t, e, zerolog.Nop())
				e.setResponse(set)
				advance(2 * time.Hour)
				if _, err := tokens.Verify(token); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestRemoteFailures(t *testing.T) {
	s := newSigners(t)
	for name, c := range map[string]struct {
		status int
		hang   bool
		want   string
	}{
		"not found":     {status: 404, want: "the answer is 404"},
		"to plain http": {status: 302, want: "it redirects to a URL"},
		"no answer":     {hang: true, want: "deadline exceeded"},
		"unavailable":   {status: 503, want: "the answer is 503"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &endpoint{set: `{"keys":[` + publicJWK("1", &s.rsa.PublicKey, "") + `]}`, status: c.status, hang: c.hang}
				r, err := NewRemote(RemoteOptions{URL: keysURL, Transport: e})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := r.Round(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("got %v", err)
				}
				if _, err := mustTokens(t, Options{Remote: r}).Verify(signAs(t, "1", jwt.SigningMethodRS256, s.rsa, jwt.MapClaims{"sub": "a"})); !errors.Is(err, ErrUnready) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestMissWaitersAreBounded checks that few tokens wait for a fetch if the endpoint hangs, and not
// for long.
func TestMissWaitersAreBounded(t *testing.T) {
	s := newSigners(t)
	token := signAs(t, "1", jwt.SigningMethodRS256, s.rsa, jwt.MapClaims{"sub": "alice"})
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{set: "{}", hang: true}
		tokens := startFetching(t, e, zerolog.Nop())
		start := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		waited := 0
		for range 200 {
			wg.Go(func() {
				if _, err := tokens.Verify(token); !errors.Is(err, ErrUnready) {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if time.Since(start) > 0 { // in synctest's time
					waited++
				}
			})
		}
		wg.Wait()
		if waited != maxMissWaiters || time.Since(start) > missFetchTimeout {
			t.Errorf("%d waited, until %v", waited, time.Since(start))
		}
	})
}

// TestSecretWithoutEndpoint checks that tokens of a configured secret or key are verified although
// the endpoint fails. Verify returns ErrUnready only for tokens that a fetched key may have signed.
func TestSecretWithoutEndpoint(t *testing.T) {
	s := newSigners(t)
	claims := jwt.MapClaims{"sub": "alice"}
	r, err := NewRemote(RemoteOptions{URL: keysURL, Transport: &endpoint{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Round(t.Context()); err == nil {
		t.Fatal("the endpoint did not fail")
	}
	r.nextMissFetch = time.Now().Add(time.Hour)
	tokens := mustTokens(t, Options{Remote: r, HS256: [][]byte{secret}, RS256: [][]byte{s.otherRSAPEM}})
	if tokens.Unready() != "" {
		t.Errorf("unready %q", tokens.Unready())
	}
	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"by the secret":                       {sign(t, jwt.SigningMethodHS256, secret, claims), nil},
		"by the secret, any kid":              {signAs(t, "1", jwt.SigningMethodHS256, secret, claims), nil},
		"by another secret":                   {signAs(t, "1", jwt.SigningMethodHS256, olderSecret, claims), ErrBadToken},
		"by the key":                          {signAs(t, "1", jwt.SigningMethodRS256, s.otherRSA, claims), nil},
		"by a key that the endpoint may have": {signAs(t, "1", jwt.SigningMethodRS256, s.rsa, claims), ErrUnready},
		"the same for EC":                     {signAs(t, "1", jwt.SigningMethodES256, s.ec, claims), ErrUnready},
	} {
		if _, err := tokens.Verify(c.token); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestFailuresAreLoggedOnce(t *testing.T) {
	s := newSigners(t)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log strings.Builder
		e := &endpoint{}
		startFetching(t, e, zerolog.New(lockedWriter{&mu, &log}))
		advance(time.Hour)
		e.serve(publicJWK("1", &s.rsa.PublicKey, ""))
		advance(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if strings.Count(log.String(), "\n") != 2 || !strings.Contains(log.String(), "again") || strings.Contains(log.String(), "hunter2") {
			t.Error(log.String())
		}
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func TestNewRemote(t *testing.T) {
	for url, want := range map[string]bool{
		"https://a.example/keys": true, "http://localhost:80/keys": true, "http://127.0.0.1/k": true, "http://[::1]/k": true,
		"http://a.example/keys": false, "http://localhost.example/": false, "http://127.0.0.1.example/": false, "": false, "keys": false, "file:///keys": false, "https://": false,
		"ftp://a.example/": false, "https://u:hunter2%@a.example": false,
	} {
		_, err := NewRemote(RemoteOptions{URL: url})
		if (err == nil) != want || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := NewRemote(RemoteOptions{URL: keysURL, Stale: time.Minute}); err == nil {
		t.Error("Stale may not be shorter than Every")
	}
}

func TestAdopt(t *testing.T) {
	newTokens := func(url string, grace time.Duration) *Tokens {
		if url == "" {
			return mustTokens(t, Options{HS256: [][]byte{secret}})
		}
		r, err := NewRemote(RemoteOptions{URL: url, Grace: grace})
		if err != nil {
			t.Fatal(err)
		}
		return mustTokens(t, Options{Remote: r})
	}
	old := newTokens(keysURL, 0)
	for _, c := range []struct {
		next *Tokens
		ok   bool
	}{{newTokens(keysURL, 10*time.Minute), true}, {newTokens(keysURL, time.Hour), false}, {newTokens("https://b.example/", 0), false}, {newTokens("", 0), false}} {
		if err := c.next.Adopt(old); (err == nil) != c.ok || c.ok && c.next.Remote() != old.Remote() {
			t.Errorf("%v", err)
		}
	}
	if err := newTokens("", 0).Adopt(newTokens("", 0)); err != nil {
		t.Error(err)
	}
}
