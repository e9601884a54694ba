//go:build long

package attack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// forgeries returns tokens that the broker must reject. Mallory can make each of them.
func (i *issuer) forgeries(t *testing.T) map[string]string {
	t.Helper()
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	admin := claims("admin", nil)
	good := i.token("mallory")
	parts := strings.Split(good, ".")
	none := jwt.UnsafeAllowNoneSignatureType
	forged := map[string]string{
		"nothing":                          "",
		"dots":                             "..",
		"no parts":                         "admin",
		"too many parts":                   good + ".x",
		"an encrypted one (JWE)":           "eyJhbGciOiJkaXIifQ.." + parts[1] + ".x.y",
		"none":                             sign(header("none", kidHMAC), admin, jwt.SigningMethodNone, none),
		"none, for the RSA key":            sign(header("none", kidRSA), admin, jwt.SigningMethodNone, none),
		"None":                             sign(header("None", kidHMAC), admin, jwt.SigningMethodNone, none),
		"nOnE with a signature":            encode(header("nOnE", kidHMAC)) + "." + encode(admin) + "." + parts[2],
		"no alg":                           encode(`{"typ":"JWT"}`) + "." + encode(admin) + ".",
		"alg twice":                        sign(`{"alg":"none","alg":"HS256","kid":"shared"}`, admin, jwt.SigningMethodHS256, i.rsaPEM),
		"the public key as a secret":       sign(header("HS256", kidRSA), admin, jwt.SigningMethodHS256, i.rsaPEM),
		"the public key, trimmed":          sign(header("HS256", kidRSA), admin, jwt.SigningMethodHS256, []byte(strings.TrimSpace(string(i.rsaPEM)))),
		"the public key, without kid":      sign(`{"alg":"HS256"}`, admin, jwt.SigningMethodHS256, i.rsaPEM),
		"the public key, HMAC kid":         sign(header("HS256", kidHMAC), admin, jwt.SigningMethodHS256, i.rsaPEM),
		"an empty secret":                  sign(header("HS256", kidHMAC), admin, jwt.SigningMethodHS256, []byte{}),
		"a guessed secret":                 sign(header("HS256", kidHMAC), admin, jwt.SigningMethodHS256, []byte("secret")),
		"the right secret, another alg":    sign(header("HS512", kidHMAC), admin, jwt.SigningMethodHS512, i.shared),
		"another RSA key":                  sign(header("RS256", kidRSA), admin, jwt.SigningMethodRS256, own),
		"another RSA key without kid":      sign(`{"alg":"RS256"}`, admin, jwt.SigningMethodRS256, own),
		"the RSA key, another padding":     sign(header("PS256", kidRSA), admin, jwt.SigningMethodPS256, i.rsa),
		"an elliptic curve key":            sign(header("ES256", kidRSA), admin, jwt.SigningMethodES256, curve),
		"kid of another key":               sign(header("HS256", kidRSA), admin, jwt.SigningMethodHS256, i.shared),
		"kid is a path":                    sign(header("HS256", "../../../../dev/null"), admin, jwt.SigningMethodHS256, []byte{}),
		"kid is an injection":              sign(header("HS256", "x' UNION SELECT 'k"), admin, jwt.SigningMethodHS256, []byte("k")),
		"kid is a list":                    sign(`{"alg":"HS256","kid":["shared"]}`, admin, jwt.SigningMethodHS256, i.shared),
		"kid is long":                      sign(header("HS256", strings.Repeat("k", 2000)), admin, jwt.SigningMethodHS256, i.shared),
		"a key in the header":              sign(`{"alg":"HS256","jwk":{"kty":"oct","k":"AAAA"}}`, admin, jwt.SigningMethodHS256, []byte{0, 0, 0}),
		"a key set URL in the header":      sign(`{"alg":"RS256","jku":"http://127.0.0.1:1/keys","kid":"own"}`, admin, jwt.SigningMethodRS256, own),
		"a critical extension":             sign(`{"alg":"HS256","kid":"shared","crit":["b64"],"b64":false}`, admin, jwt.SigningMethodHS256, i.shared),
		"another payload":                  parts[0] + "." + encode(admin) + "." + parts[2],
		"another header":                   encode(header("HS256", kidRevocable)) + "." + parts[1] + "." + parts[2],
		"no signature":                     parts[0] + "." + parts[1] + ".",
		"a part of the signature":          good[:len(good)-10],
		"extra text after the signature":   good + "AAAA",
		"padding":                          good + "=",
		"a line break inside":              parts[0] + "\n." + parts[1] + "." + parts[2],
		"other audience":                   i.tokenWith("mallory", map[string]any{"aud": "shop"}),
		"no audience":                      i.tokenWith("mallory", map[string]any{"aud": nil}),
		"other issuer":                     i.tokenWith("mallory", map[string]any{"iss": "mallory"}),
		"no issuer":                        i.tokenWith("mallory", map[string]any{"iss": nil}),
		"not valid yet":                    i.tokenWith("mallory", map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
		"issued in the future":             i.tokenWith("mallory", map[string]any{"iat": time.Now().Add(time.Hour).Unix()}),
		"exp is a word":                    i.tokenWith("mallory", map[string]any{"exp": "never"}),
		"no user":                          i.tokenWith("mallory", map[string]any{"sub": nil}),
		"a user that is a list":            i.tokenWith("mallory", map[string]any{"sub": []string{"mallory", "admin"}}),
		"a user with a line break":         i.tokenWith("mallory\nadmin", nil),
		"a user with a zero":               i.tokenWith("admin\x00", nil),
		"a user with braces":               i.tokenWith("{admin}", nil),
		"a user's name too long":           i.tokenWith(strings.Repeat("m", 201), nil),
		"200 grants":                       i.tokenWith("mallory", map[string]any{"channels": manyGrants(200)}),
		"a grant for a system channel":     i.tokenWith("mallory", map[string]any{"channels": map[string]string{"$*": "*"}}),
		"a grant for a part of a word":     i.tokenWith("mallory", map[string]any{"channels": map[string]string{"inb*": "*"}}),
		"a system channel to subscribe to": i.tokenWith("mallory", map[string]any{"subscribe": []string{"$all"}}),
		"a user's presence to subscribe":   i.tokenWith("mallory", map[string]any{"subscribe": []string{"$user:admin"}}),
		"65 channels to subscribe to":      i.tokenWith("mallory", map[string]any{"subscribe": manyNames(65)}),
		"a channel with a line break":      i.tokenWith("mallory", map[string]any{"subscribe": []string{"a\nb"}}),
		"a channel that is a list":         i.tokenWith("mallory", map[string]any{"subscribe": []any{[]string{"a"}}}),
		"channels that are a name":         i.tokenWith("mallory", map[string]any{"subscribe": "a"}),
		"too long":                         i.tokenWith("mallory", map[string]any{"x": strings.Repeat("x", 7000)}),
		"a deep info":                      i.signed(`{"sub":"mallory","iss":"login","aud":"broker","info":{"a":` + strings.Repeat("[", 1500) + strings.Repeat("]", 1500) + `}}`),
		"two users":                        i.signed(`{"sub":"mallory","sub":"admin","iss":"login","aud":"broker"}`),
		"a user in another case":           i.signed(`{"SUB":"admin","iss":"login","aud":"broker"}`),
		"half of a surrogate pair":         i.signed(`{"sub":"\ud800","iss":"login","aud":"broker"}`),
		"exp is too large":                 i.signed(`{"sub":"mallory","iss":"login","aud":"broker","exp":1e999}`),
		"incomplete payload":               i.signed(`{"sub":`),
		"a payload that is a list":         i.signed(`["admin"]`),
		"two payloads":                     i.signed(claims("mallory", nil) + claims("admin", nil)),
		"a payload with a byte order mark": i.signed("\ufeff" + admin),
		"payload is not text":              i.signed("\xff\xfe\x00"),
		"user with invalid UTF-8":          i.signed("{\"sub\":\"mallory\xff\",\"iss\":\"login\",\"aud\":\"broker\"}"),
	}
	return forged
}

// signed returns a token with any payload.
func (i *issuer) signed(payload string) string {
	return sign(header("HS256", kidHMAC), payload, jwt.SigningMethodHS256, i.shared)
}

func manyNames(n int) (names []string) {
	for k := range n {
		names = append(names, fmt.Sprintf("c:%d", k))
	}
	return names
}

func manyGrants(n int) map[string]string {
	grants := map[string]string{}
	for k := range n {
		grants[fmt.Sprintf("c:%d", k)] = "sub"
	}
	return grants
}

// forgedTokens tries each forgery at each endpoint, in the connect message and in the URL.
func forgedTokens(t *testing.T, s *scenario) {
	for name, token := range s.forgeries(t) {
		for _, e := range endpoints {
			want := e.closing("error:unauthorized", "unauthorized", 4003)
			a := s.open(t, e, "")
			a.send(connectAs("mallory", token))
			if got := a.refusal(); got != want {
				t.Errorf("%s, %s: got %q, want %q", name, e.name, got, want)
			}
			if !e.frames || len(token) > 4<<10 { // such a URL is too long for one of the listeners
				continue
			}
			a = s.open(t, e, "?client=mallory&token="+url.QueryEscape(token))
			if got := a.refusal(); got != want {
				t.Errorf("%s, %s, in the URL: got %q, want %q", name, e.name, got, want)
			}
		}
	}
}
