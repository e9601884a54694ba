package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// publicJWK encodes a public key as a JSON Web Key. more is appended to its fields.
func publicJWK(kid string, key any, more string) string {
	encode := base64.RawURLEncoding.EncodeToString
	var fields string
	switch key := key.(type) {
	case *rsa.PublicKey:
		fields = fmt.Sprintf(`"kty":"RSA","n":%q,"e":%q`, encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes()))
	case *ecdsa.PublicKey:
		point, err := key.Bytes()
		if err != nil {
			panic(err)
		}
		size := (len(point) - 1) / 2
		fields = fmt.Sprintf(`"kty":"EC","crv":%q,"x":%q,"y":%q`, key.Curve.Params().Name, encode(point[1:1+size]), encode(point[1+size:]))
	case ed25519.PublicKey:
		fields = fmt.Sprintf(`"kty":"OKP","crv":"Ed25519","x":%q`, encode(key))
	}
	if kid != "" {
		fields += fmt.Sprintf(`,"kid":%q`, kid)
	}
	return "{" + fields + more + "}"
}

func TestParseKeySet(t *testing.T) {
	s := newSigners(t)
	point := publicJWK("e", &s.ec.PublicKey, "")
	var k jwk
	if err := json.Unmarshal([]byte(point), &k); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ key, want string }{
		"padded":                  {strings.Replace(point, k.X+`"`, k.X+`="`, 1), ""},
		"off the curve":           {strings.Replace(point, k.Y, k.X, 1), "not on"},
		"short coordinate":        {strings.Replace(point, k.Y, k.Y[:40], 1), "is not 32 bytes"},
		"another curve":           {strings.Replace(point, "P-256", "P-384", 1), "is not 48 bytes"},
		"no such curve":           {strings.Replace(point, "P-256", "P-192", 1), `crv "P-192" is not supported`},
		"alg of another kind":     {publicJWK("e", &s.ec.PublicKey, `,"alg":"RS256"`), "*ecdsa.PublicKey"},
		"alg none":                {publicJWK("e", &s.ec.PublicKey, `,"alg":"none"`), "not a supported algorithm"},
		"alg HS256":               {publicJWK("r", &s.rsa.PublicKey, `,"alg":"HS256"`), "not a supported algorithm"},
		"another alg of its kind": {publicJWK("r", &s.rsa.PublicKey, `,"alg":"RS384"`), ""},
		"exponent 1":              {`{"kty":"RSA","n":"` + strings.Repeat("_", 342) + `","e":"AQ"}`, "e is out of range"},
		"exponent 2":              {`{"kty":"RSA","n":"` + strings.Repeat("_", 342) + `","e":"Ag"}`, "e is out of range"},
		"a huge exponent":         {`{"kty":"RSA","n":"` + strings.Repeat("_", 342) + `","e":"AQAAAAAAAAAB"}`, "usual size"},
		"no exponent":             {`{"kty":"RSA","n":"` + strings.Repeat("_", 342) + `"}`, "usual size"},
		"a huge modulus":          {`{"kty":"RSA","n":"` + strings.Repeat("_", 1368) + `","e":"AQAB"}`, "usual size"},
		"a small modulus":         {`{"kty":"RSA","n":"` + strings.Repeat("_", 171) + `","e":"AQAB"}`, "at least 2048"},
		"not base64":              {`{"kty":"RSA","n":"!","e":"AQAB"}`, "base64url"},
		"a short Ed25519":         {`{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`, "not an Ed25519 key"},
		"X25519":                  {`{"kty":"OKP","crv":"X25519","x":"` + strings.Repeat("A", 43) + `"}`, "not an Ed25519 key"},
		"a long kid":              {publicJWK(strings.Repeat("k", 201), &s.rsa.PublicKey, ""), "the kid is too long"},
		"no kind":                 {`{}`, "not a supported kind"},
		"key is a list":           {`[]`, "key 1 is not a JSON Web Key"},
		"kty is a number":         {`{"kty":7}`, "key 1 is not a JSON Web Key"},
		"x5u is not fetched":      {publicJWK("r", &s.rsa.PublicKey, `,"x5u":"https://evil.example"`), ""},
	} {
		keys, skipped, err := parseKeySet([]byte(`{"keys":[` + c.key + `]}`))
		if c.want == "" && (err != nil || skipped != nil || len(keys) != 1) || c.want != "" && (err == nil || skipped == nil || !strings.Contains(skipped.Error(), c.want)) {
			t.Errorf("%s: %d keys, %v, %v, want %q", name, len(keys), skipped, err, c.want)
		}
	}
}

func FuzzKeySet(f *testing.F) {
	s := newSigners(f)
	for _, key := range []any{&s.rsa.PublicKey, &s.ec.PublicKey, s.ed.Public()} {
		f.Add([]byte(`{"keys":[` + publicJWK("k", key, "") + `]}`))
	}
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"},{"kty":"EC","crv":"P-256","x":"","y":""},7]}`))
	token := signWithHeader(f, `{"alg":"HS256","kid":"k"}`, jwt.SigningMethodHS256, secret, `{"sub":"alice"}`)
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, _, err := parseKeySet(text)
		if err != nil {
			return
		}
		for _, v := range keys {
			if err := checkAlgorithm(v.alg, v.key); err != nil {
				t.Fatal(err)
			}
		}
		r, err := NewRemote(RemoteOptions{URL: keysURL, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		r.replace(keys)
		if _, err := mustTokens(t, Options{Remote: r}).Verify(token); !errors.Is(err, ErrBadToken) {
			t.Fatalf("HS256 by a fetched key: %v", err)
		}
	})
}
