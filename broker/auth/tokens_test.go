package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var (
	now         = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	secret      = []byte("0123456789abcdef0123456789abcdef")
	olderSecret = []byte("the secret before that one, also long enough")
)

// signers are private keys and the PEM of their public keys.
type signers struct {
	rsa, otherRSA       *rsa.PrivateKey
	ed                  ed25519.PrivateKey
	ec, ec384           *ecdsa.PrivateKey
	rsaPEM, otherRSAPEM []byte
	edPEM, ecPEM        []byte
}

// newSigners returns signers that all tests share, since making RSA keys takes long.
func newSigners(tb testing.TB) signers {
	tb.Helper()
	signersOnce.Do(func() { sharedSigners = makeSigners(tb) })
	return sharedSigners
}

var (
	signersOnce   sync.Once
	sharedSigners signers
)

func makeSigners(tb testing.TB) signers {
	tb.Helper()
	var s signers
	var err error
	if s.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		tb.Fatal(err)
	}
	if s.otherRSA, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		tb.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	s.ed = private
	if s.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		tb.Fatal(err)
	}
	if s.ec384, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader); err != nil {
		tb.Fatal(err)
	}
	s.ecPEM = pemOf(tb, &s.ec.PublicKey)
	s.rsaPEM, s.otherRSAPEM = pemOf(tb, &s.rsa.PublicKey), pemOf(tb, &s.otherRSA.PublicKey)
	s.edPEM = pemOf(tb, public)
	return s
}

func pemOf(tb testing.TB, public any) []byte {
	tb.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func sign(tb testing.TB, method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	tb.Helper()
	return signAs(tb, "", method, key, claims)
}

// signAs names the key in the header.
func signAs(tb testing.TB, kid string, method jwt.SigningMethod, key any, claims jwt.Claims) string {
	tb.Helper()
	unsigned := jwt.NewWithClaims(method, claims)
	if kid != "" {
		unsigned.Header["kid"] = kid
	}
	token, err := unsigned.SignedString(key)
	if err != nil {
		tb.Fatal(err)
	}
	return token
}

func mustTokens(tb testing.TB, opts Options) *Tokens {
	tb.Helper()
	opts.Now = func() time.Time { return now }
	t, err := NewTokens(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func TestVerifyClaims(t *testing.T) {
	tokens := mustTokens(t, Options{HS256: [][]byte{secret}, Leeway: 5 * time.Second})
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for name, c := range map[string]struct {
		claims  jwt.MapClaims
		want    error
		expires time.Time
	}{
		"no end":                  {claims: jwt.MapClaims{"sub": "alice"}},
		"valid":                   {claims: jwt.MapClaims{"sub": "alice", "exp": at(time.Minute), "nbf": at(-1), "iat": at(-1)}, expires: now.Add(65 * time.Second)},
		"within leeway":           {claims: jwt.MapClaims{"sub": "alice", "exp": at(-3 * time.Second)}, expires: now.Add(2 * time.Second)},
		"expired":                 {claims: jwt.MapClaims{"sub": "alice", "exp": at(-5 * time.Second)}, want: ErrExpired},
		"not yet":                 {claims: jwt.MapClaims{"sub": "alice", "nbf": at(6 * time.Second)}, want: ErrBadToken},
		"expired before it began": {claims: jwt.MapClaims{"sub": "alice", "nbf": at(time.Minute), "exp": at(-time.Minute)}, want: ErrBadToken},
		"issued in the future":    {claims: jwt.MapClaims{"sub": "alice", "iat": at(6 * time.Second)}, want: ErrBadToken},
		"no sub":                  {claims: jwt.MapClaims{"user": "alice"}, want: ErrBadToken},
		"sub is a number":         {claims: jwt.MapClaims{"sub": 7}, want: ErrBadToken},
		"sub with braces":         {claims: jwt.MapClaims{"sub": "a{b}"}, want: ErrBadToken},
		"exp is a word":           {claims: jwt.MapClaims{"sub": "alice", "exp": "soon"}, want: ErrBadToken},
		"too long":                {claims: jwt.MapClaims{"sub": strings.Repeat("a", MaxToken)}, want: ErrBadToken},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tokens.Verify(sign(t, jwt.SigningMethodHS256, secret, c.claims))
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if errors.Is(err, ErrExpired) && errors.Is(err, ErrBadToken) {
				t.Fatalf("%v is both", err)
			}
			if err == nil && (got.User != "alice" || !got.Expires.Equal(c.expires)) {
				t.Fatalf("got %+v, want alice until %v", got, c.expires)
			}
		})
	}
}

func TestVerifyKeys(t *testing.T) {
	s := newSigners(t)
	all := Options{
		HS256: [][]byte{secret, olderSecret},
		RS256: [][]byte{slices.Concat(s.otherRSAPEM, s.rsaPEM)},
		EdDSA: [][]byte{s.edPEM},
	}
	claims := jwt.MapClaims{"sub": "alice"}
	critical := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	critical.Header["crit"] = []string{"b64"}
	withCrit, err := critical.SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	good := sign(t, jwt.SigningMethodHS256, secret, claims)
	for name, c := range map[string]struct {
		opts  Options
		token string
		ok    bool
	}{
		"HS256":              {all, good, true},
		"HS256, older":       {all, sign(t, jwt.SigningMethodHS256, olderSecret, claims), true},
		"RS256, second":      {all, sign(t, jwt.SigningMethodRS256, s.rsa, claims), true},
		"RS256, first":       {all, sign(t, jwt.SigningMethodRS256, s.otherRSA, claims), true},
		"EdDSA":              {all, sign(t, jwt.SigningMethodEdDSA, s.ed, claims), true},
		"unknown secret":     {all, sign(t, jwt.SigningMethodHS256, []byte("guessed"), claims), false},
		"unknown RSA key":    {Options{RS256: [][]byte{s.rsaPEM}}, sign(t, jwt.SigningMethodRS256, s.otherRSA, claims), false},
		"no key of this alg": {Options{EdDSA: [][]byte{s.edPEM}}, good, false},
		"no keys":            {Options{}, good, false},
		"none":               {all, sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims), false},
		"alg none, no keys":  {Options{}, sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims), false},
		"HS384":              {all, sign(t, jwt.SigningMethodHS384, secret, claims), false},
		"public key as HMAC": {Options{RS256: [][]byte{s.rsaPEM}}, sign(t, jwt.SigningMethodHS256, s.rsaPEM, claims), false},
		"public key as HMAC beside a secret": {
			Options{HS256: [][]byte{secret}, RS256: [][]byte{s.rsaPEM}},
			sign(t, jwt.SigningMethodHS256, s.rsaPEM, claims), false,
		},
		"critical extension": {all, withCrit, false},
		"signature cut off":  {all, good[:strings.LastIndexByte(good, '.')+1], false},
		"payload changed":    {all, changePayload(good), false},
		"empty":              {all, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mustTokens(t, c.opts).Verify(c.token)
			if c.ok && (err != nil || got.User != "alice") {
				t.Fatalf("got %+v, %v", got, err)
			}
			if !c.ok && !errors.Is(err, ErrBadToken) {
				t.Fatalf("got %+v, %v, want ErrBadToken", got, err)
			}
		})
	}
}

func changePayload(token string) string {
	parts := strings.Split(token, ".")
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"root"}`))
	return strings.Join(parts, ".")
}

func TestNewTokensRefusesKeys(t *testing.T) {
	s := newSigners(t)
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(s.rsa)})
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		opts Options
		want string
	}{
		"empty secret":     {Options{HS256: [][]byte{secret, {}}}, "HS256 secret 2 is empty"},
		"PEM as a secret":  {Options{HS256: [][]byte{s.rsaPEM}}, "belongs to RS256"},
		"no PEM":           {Options{RS256: [][]byte{[]byte("key.pem")}}, "RS256 key 1: there is no PEM block"},
		"private key":      {Options{RS256: [][]byte{private}}, "private key"},
		"wrong kind":       {Options{EdDSA: [][]byte{s.rsaPEM}}, "EdDSA key 1: it is a *rsa.PublicKey"},
		"other PEM":        {Options{EdDSA: [][]byte{pem.EncodeToMemory(&pem.Block{Type: "X509 CRL"})}}, "not a public key"},
		"1024 bits of RSA": {Options{RS256: [][]byte{pemOf(t, &short.PublicKey)}}, "at least 2048"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewTokens(c.opts)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v, want one line with %q", err, c.want)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	if !mustTokens(t, Options{}).Open() {
		t.Error("no keys: not open")
	}
	if mustTokens(t, Options{HS256: [][]byte{secret}}).Open() {
		t.Error("with a key: open")
	}
}

func TestShortSecret(t *testing.T) {
	short := secret[:MinSecret-1]
	for _, opts := range []Options{
		{HS256: [][]byte{secret, short}},
		{Named: []NamedKey{{ID: "a", Alg: hs256, Text: short}}},
	} {
		if _, err := NewTokens(opts); err == nil || !strings.Contains(err.Error(), "less than 32 bytes") || strings.Contains(err.Error(), string(short)) {
			t.Errorf("%v", err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	s := newSigners(f)
	tokens := mustTokens(f, Options{
		HS256: [][]byte{secret}, RS256: [][]byte{s.rsaPEM}, EdDSA: [][]byte{s.edPEM},
	})
	good := sign(f, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "alice", "exp": now.Unix() + 60})
	f.Add(good)
	f.Add(sign(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, jwt.MapClaims{"sub": "alice"}))
	f.Add(sign(f, jwt.SigningMethodHS256, secret, nil))
	f.Add(signAs(f, "no such key", jwt.SigningMethodHS256, olderSecret, jwt.MapClaims{"sub": "alice"}))
	f.Add("e30.bnVsbA.")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		claims, err := tokens.Verify(token)
		switch {
		case err == nil && token != good:
			t.Fatalf("forged: %q is %+v", token, claims)
		case err != nil && !errors.Is(err, ErrBadToken) && !errors.Is(err, ErrExpired):
			t.Fatalf("an unknown error: %v", err)
		}
	})
}
