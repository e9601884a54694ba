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

// endpoint answers for the issuer.
type endpoint struct {
	mu     sync.Mutex // guards the fields below
	set    string     // "" is a failure
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

func (e *endpoint) serve(keys ...string) { e.say(`{"keys":[` + strings.Join(keys, ",") + `]}`) }

func (e *endpoint) fail() { e.say("") }

func (e *endpoint) say(set string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set = set
}

func (e *endpoint) called() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls
}

// fetching runs tokens that fetch from e, in a bubble of synctest.
func fetching(t *testing.T, e *endpoint, log zerolog.Logger) *Tokens {
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

func later(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestRemoteKeys(t *testing.T) {
	s := newSigners(t)
	claims := jwt.MapClaims{"sub": "alice"}
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		e.serve(
			public("r", &s.rsa.PublicKey, ""), public("p", &s.otherRSA.PublicKey, `,"alg":"PS256","use":"sig"`),
			public("e", &s.ec.PublicKey, ""), public("e3", &s.ec384.PublicKey, `,"key_ops":["verify"]`), public("d", s.ed.Public(), ""),
			public("enc", &s.rsa.PublicKey, `,"use":"enc"`), public("wrap", &s.rsa.PublicKey, `,"key_ops":["encrypt"]`),
			`{"kty":"oct","kid":"h","k":"`+base64.RawURLEncoding.EncodeToString(secret)+`"}`, `{"kty":"PQ","kid":"q"}`, `7`,
		)
		tokens := fetching(t, e, zerolog.Nop())
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

// TestRotation has a new key come, the old one go, and the endpoint be away.
func TestRotation(t *testing.T) {
	s := newSigners(t)
	claims := jwt.MapClaims{"sub": "alice"}
	first, second := public("1", &s.rsa.PublicKey, ""), public("2", &s.otherRSA.PublicKey, "")
	byFirst := signAs(t, "1", jwt.SigningMethodRS256, s.rsa, claims)
	bySecond := signAs(t, "2", jwt.SigningMethodRS256, s.otherRSA, claims)
	invented := signAs(t, "3", jwt.SigningMethodRS256, s.rsa, claims)
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{}
		tokens := fetching(t, e, zerolog.Nop())
		expect := func(when, token string, want error) {
			t.Helper()
			if _, err := tokens.Verify(token); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", when, err, want)
			}
		}
		expect("the endpoint was never there", byFirst, ErrUnready)
		if !strings.Contains(tokens.Unready(), "not be fetched yet") {
			t.Errorf("unready %q", tokens.Unready())
		}
		e.serve(first)
		later(5 * time.Second) // a failure is followed by another try soon
		expect("it came", byFirst, nil)

		later(askGap) // for the asking at the start
		e.serve(first, second)
		before := e.called()
		expect("a key that is new there", bySecond, nil) // by a fetch of its own
		expect("an invented one, right behind", invented, ErrBadToken)
		if n := e.called() - before; n != 1 {
			t.Errorf("%d fetches, want 1", n)
		}
		for range 100 {
			expect("more of them", invented, ErrBadToken)
		}
		later(askGap)
		expect("and later", invented, ErrBadToken)
		if n := e.called() - before; n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}

		e.serve(second)
		later(11 * time.Minute) // the interval, and its tenth
		expect("dropped a moment ago", byFirst, nil)
		later(11 * time.Minute)
		expect("dropped", byFirst, ErrBadToken)
		expect("what is still there", bySecond, nil)

		e.fail()
		later(23 * time.Hour)
		expect("the endpoint is away", bySecond, nil)
		expect("it may know it", byFirst, ErrUnready)
		later(2 * time.Hour)
		expect("away for too long", bySecond, ErrUnready)
		if !strings.Contains(tokens.Unready(), "for too long") {
			t.Errorf("unready %q", tokens.Unready())
		}
		e.serve(first)
		later(2 * time.Minute)
		expect("it is back with another", byFirst, nil)
		expect("the former's grace begins now", bySecond, nil)
	})
}

// TestEmptySetIsNone: an endpoint that forgets its keys is taken for broken, not for a revocation of all.
func TestEmptySetIsNone(t *testing.T) {
	s := newSigners(t)
	token := signAs(t, "1", jwt.SigningMethodRS256, s.rsa, jwt.MapClaims{"sub": "alice"})
	huge := `{"keys":[` + public("2", &s.otherRSA.PublicKey, "") + `]}` + strings.Repeat(" ", maxKeySet)
	many := `{"keys":[` + strings.Repeat("{},", maxKeys) + `{}]}`
	for name, set := range map[string]string{
		"empty": `{"keys":[]}`, "no keys": `{}`, "null": `null`, "HTML": `<html>`, "huge": huge, "many": many, "unusable": `{"keys":[{"kty":"PQ"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &endpoint{}
				e.serve(public("1", &s.rsa.PublicKey, ""))
				tokens := fetching(t, e, zerolog.Nop())
				e.say(set)
				later(2 * time.Hour)
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
		"not found":   {status: 404, want: "the answer is 404"},
		"to plain":    {status: 302, want: "it redirects to where"},
		"no answer":   {hang: true, want: "deadline exceeded"},
		"server lost": {status: 503, want: "the answer is 503"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &endpoint{set: `{"keys":[` + public("1", &s.rsa.PublicKey, "") + `]}`, status: c.status, hang: c.hang}
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

// TestAskersAreFew: with an endpoint that hangs only a few workers wait, and not for long.
func TestAskersAreFew(t *testing.T) {
	s := newSigners(t)
	token := signAs(t, "1", jwt.SigningMethodRS256, s.rsa, jwt.MapClaims{"sub": "alice"})
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{set: "{}", hang: true}
		tokens := fetching(t, e, zerolog.Nop())
		begin := time.Now()
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
				if time.Since(begin) > 0 { // of the bubble's clock
					waited++
				}
			})
		}
		wg.Wait()
		if waited != askers || time.Since(begin) > askWait {
			t.Errorf("%d waited, until %v", waited, time.Since(begin))
		}
	})
}

// TestUnreadyBesideASecret: what the secret signs is verified without the endpoint, and what it has not signed is
// no reason to come back.
func TestUnreadyBesideASecret(t *testing.T) {
	s := newSigners(t)
	claims := jwt.MapClaims{"sub": "alice"}
	r, err := NewRemote(RemoteOptions{URL: keysURL, Transport: &endpoint{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Round(t.Context()); err == nil {
		t.Fatal("the endpoint is there")
	}
	r.ask = time.Now().Add(time.Hour)
	tokens := mustTokens(t, Options{Remote: r, HS256: [][]byte{secret}, RS256: [][]byte{s.otherRSAPEM}})
	if tokens.Unready() != "" {
		t.Errorf("unready %q", tokens.Unready())
	}
	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"by the secret":            {sign(t, jwt.SigningMethodHS256, secret, claims), nil},
		"by the secret, any kid":   {signAs(t, "1", jwt.SigningMethodHS256, secret, claims), nil},
		"by another secret":        {signAs(t, "1", jwt.SigningMethodHS256, older, claims), ErrBadToken},
		"by the key":               {signAs(t, "1", jwt.SigningMethodRS256, s.otherRSA, claims), nil},
		"by what may be published": {signAs(t, "1", jwt.SigningMethodRS256, s.rsa, claims), ErrUnready},
		"the same for EC":          {signAs(t, "1", jwt.SigningMethodES256, s.ec, claims), ErrUnready},
	} {
		if _, err := tokens.Verify(c.token); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestRemoteTellsOnce(t *testing.T) {
	s := newSigners(t)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log strings.Builder
		e := &endpoint{}
		fetching(t, e, zerolog.New(lock{&mu, &log}))
		later(time.Hour)
		e.serve(public("1", &s.rsa.PublicKey, ""))
		later(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if strings.Count(log.String(), "\n") != 2 || !strings.Contains(log.String(), "again") || strings.Contains(log.String(), "hunter2") {
			t.Error(log.String())
		}
	})
}

type lock struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lock) Write(b []byte) (int, error) {
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
		t.Error("keys grow stale before they are fetched again")
	}
}

func TestAdopt(t *testing.T) {
	make := func(url string, grace time.Duration) *Tokens {
		if url == "" {
			return mustTokens(t, Options{HS256: [][]byte{secret}})
		}
		r, err := NewRemote(RemoteOptions{URL: url, Grace: grace})
		if err != nil {
			t.Fatal(err)
		}
		return mustTokens(t, Options{Remote: r})
	}
	old := make(keysURL, 0)
	for _, c := range []struct {
		next *Tokens
		ok   bool
	}{{make(keysURL, 10*time.Minute), true}, {make(keysURL, time.Hour), false}, {make("https://b.example/", 0), false}, {make("", 0), false}} {
		if err := c.next.Adopt(old); (err == nil) != c.ok || c.ok && c.next.Remote() != old.Remote() {
			t.Errorf("%v", err)
		}
	}
	if err := make("", 0).Adopt(make("", 0)); err != nil {
		t.Error(err)
	}
}
