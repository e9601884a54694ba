package auth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// signWithHeader signs a payload with any header, as an attacker may write it.
func signWithHeader(tb testing.TB, text string, method jwt.SigningMethod, key any, payload string) string {
	tb.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	body := encode([]byte(text)) + "." + encode([]byte(payload))
	signature, err := method.Sign(body, key)
	if err != nil {
		tb.Fatal(err)
	}
	return body + "." + encode(signature)
}

// TestNamedKeys configures one named key of each algorithm.
func TestNamedKeys(t *testing.T) {
	s := newSigners(t)
	named := Options{Named: []NamedKey{
		{"h", "HS256", secret}, {"r", "RS256", s.rsaPEM}, {"p", "PS256", s.otherRSAPEM}, {"r5", "RS512", s.rsaPEM},
		{"e", "ES256", s.ecPEM}, {"e3", "ES384", pemOf(t, &s.ec384.PublicKey)}, {"d", "EdDSA", s.edPEM},
	}}
	withUnnamed := named
	withUnnamed.HS256 = [][]byte{olderSecret}
	claims := jwt.MapClaims{"sub": "alice"}
	const body = `{"sub":"alice"}`
	for name, c := range map[string]struct {
		opts  Options
		token string
		ok    bool
	}{
		"HS256": {named, signAs(t, "h", jwt.SigningMethodHS256, secret, claims), true},
		"RS256": {named, signAs(t, "r", jwt.SigningMethodRS256, s.rsa, claims), true},
		"RS512": {named, signAs(t, "r5", jwt.SigningMethodRS512, s.rsa, claims), true},
		"PS256": {named, signAs(t, "p", jwt.SigningMethodPS256, s.otherRSA, claims), true},
		"ES256": {named, signAs(t, "e", jwt.SigningMethodES256, s.ec, claims), true},
		"ES384": {named, signAs(t, "e3", jwt.SigningMethodES384, s.ec384, claims), true},
		"EdDSA": {named, signAs(t, "d", jwt.SigningMethodEdDSA, s.ed, claims), true},

		"without a kid":                    {named, sign(t, jwt.SigningMethodHS256, secret, claims), false},
		"unknown kid":                      {named, signAs(t, "x", jwt.SigningMethodHS256, secret, claims), false},
		"kid in another case":              {named, signAs(t, "H", jwt.SigningMethodHS256, secret, claims), false},
		"another key's name":               {named, signAs(t, "p", jwt.SigningMethodRS256, s.rsa, claims), false},
		"another alg of the same family":   {named, signAs(t, "r", jwt.SigningMethodRS512, s.rsa, claims), false},
		"PS256 with an RS256 key":          {named, signAs(t, "r", jwt.SigningMethodPS256, s.rsa, claims), false},
		"forged":                           {named, signAs(t, "h", jwt.SigningMethodHS256, olderSecret, claims), false},
		"public key as HMAC, its kid":      {named, signAs(t, "r", jwt.SigningMethodHS256, s.rsaPEM, claims), false},
		"public key as HMAC, secret's kid": {named, signAs(t, "h", jwt.SigningMethodHS256, s.rsaPEM, claims), false},
		"EC key as HMAC":                   {named, signAs(t, "e", jwt.SigningMethodHS256, s.ecPEM, claims), false},
		"none under a kid":                 {named, signWithHeader(t, `{"alg":"none","kid":"h"}`, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, body), false},
		"None":                             {named, signWithHeader(t, `{"alg":"None","kid":"h"}`, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, body), false},
		"hs256":                            {named, signWithHeader(t, `{"alg":"hs256","kid":"h"}`, jwt.SigningMethodHS256, secret, body), false},
		"kid is a number":                  {named, signWithHeader(t, `{"alg":"HS256","kid":7}`, jwt.SigningMethodHS256, secret, body), false},
		"kid is a list":                    {named, signWithHeader(t, `{"alg":"HS256","kid":["h"]}`, jwt.SigningMethodHS256, secret, body), false},
		"kid is huge":                      {named, signAs(t, strings.Repeat("h", 201), jwt.SigningMethodHS256, secret, claims), false},
		"kid is a path":                    {named, signAs(t, "../../dev/null", jwt.SigningMethodHS256, []byte{}, claims), false},
		"two kids":                         {named, signWithHeader(t, `{"alg":"HS256","kid":"x","kid":"h"}`, jwt.SigningMethodHS256, secret, body), false},
		"two algs":                         {named, signWithHeader(t, `{"alg":"none","alg":"HS256","kid":"h"}`, jwt.SigningMethodHS256, secret, body), false},
		"a key of its own":                 {named, signWithHeader(t, `{"alg":"HS256","jwk":{"kty":"oct","k":"AAAA"}}`, jwt.SigningMethodHS256, []byte{0, 0, 0}, body), false},
		"a key set of its own":             {named, signWithHeader(t, `{"alg":"HS256","jku":"https://evil.example","kid":"x"}`, jwt.SigningMethodHS256, olderSecret, body), false},

		"unnamed beside named":              {withUnnamed, sign(t, jwt.SigningMethodHS256, olderSecret, claims), true},
		"unnamed under an unknown kid":      {withUnnamed, signAs(t, "x", jwt.SigningMethodHS256, olderSecret, claims), true},
		"unnamed under another's kid":       {withUnnamed, signAs(t, "h", jwt.SigningMethodHS256, olderSecret, claims), false},
		"unnamed under an RSA key's kid":    {withUnnamed, signAs(t, "r", jwt.SigningMethodHS256, olderSecret, claims), false},
		"unnamed, public key as its secret": {withUnnamed, signAs(t, "x", jwt.SigningMethodHS256, s.rsaPEM, claims), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mustTokens(t, c.opts).Verify(c.token)
			if c.ok && (err != nil || got.User != "alice") || !c.ok && !errors.Is(err, ErrBadToken) {
				t.Fatalf("got %+v, %v", got, err)
			}
		})
	}
}

func TestNewTokensRefusesNamedKeys(t *testing.T) {
	s := newSigners(t)
	for name, c := range map[string]struct {
		keys []NamedKey
		want string
	}{
		"no name":             {[]NamedKey{{"", "HS256", secret}}, "the name (kid) must have"},
		"twice":               {[]NamedKey{{"a", "HS256", secret}, {"a", "EdDSA", s.edPEM}}, `key "a": there are two keys with that name`},
		"no such alg":         {[]NamedKey{{"a", "HS384", secret}}, `"HS384" is not a supported algorithm`},
		"none":                {[]NamedKey{{"a", "none", s.edPEM}}, `"none" is not a supported algorithm`},
		"PEM as a secret":     {[]NamedKey{{"a", "HS256", s.rsaPEM}}, "the secret is a PEM file"},
		"secret as PEM":       {[]NamedKey{{"a", "RS256", secret}}, "there is no PEM block"},
		"empty":               {[]NamedKey{{"a", "HS256", nil}}, "the secret is empty"},
		"two keys":            {[]NamedKey{{"a", "RS256", slices.Concat(s.rsaPEM, s.otherRSAPEM)}}, "more than one key"},
		"another kind":        {[]NamedKey{{"a", "ES256", s.rsaPEM}}, "*rsa.PublicKey"},
		"another curve":       {[]NamedKey{{"a", "ES256", pemOf(t, &s.ec384.PublicKey)}}, "P-384"},
		"EdDSA with EC's":     {[]NamedKey{{"a", "EdDSA", s.ecPEM}}, "*ecdsa.PublicKey"},
		"a name of 201 bytes": {[]NamedKey{{strings.Repeat("a", 201), "HS256", secret}}, "the name (kid)"},
	} {
		if _, err := NewTokens(Options{Named: c.keys}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestPayloads verifies payloads with a valid signature.
func TestPayloads(t *testing.T) {
	tokens := mustTokens(t, Options{HS256: [][]byte{secret}, Audiences: []string{"chat", "push"}, Issuers: []string{"us", "them"}})
	const good = `"iss":"us","aud":"chat"`
	for name, c := range map[string]struct{ payload, want string }{
		"fine":                     {`{"sub":"alice",` + good + `}`, ""},
		"one of many audiences":    {`{"sub":"alice","iss":"them","aud":["x","push"]}`, ""},
		"unknown claims":           {`{"sub":"alice",` + good + `,"scope":"x","Sub2":1}`, ""},
		"info":                     {`{"sub":"alice",` + good + `,"info":{"a":[1, 2]}}`, ""},
		"grants":                   {`{"sub":"alice",` + good + `,"channels":{"chat:*":"sub pub","news":"*"}}`, ""},
		"no audience":              {`{"sub":"alice","iss":"us"}`, "aud"},
		"another audience":         {`{"sub":"alice","iss":"us","aud":"Chat"}`, "aud"},
		"audience is a number":     {`{"sub":"alice","iss":"us","aud":7}`, "aud"},
		"audience in an object":    {`{"sub":"alice","iss":"us","aud":{"chat":1}}`, "aud"},
		"no issuer":                {`{"sub":"alice","aud":"chat"}`, "iss"},
		"another issuer":           {`{"sub":"alice","iss":"us ","aud":"chat"}`, "iss"},
		"issuer is a list":         {`{"sub":"alice","iss":["us"],"aud":"chat"}`, "iss"},
		"sub twice":                {`{"sub":"alice","sub":"root",` + good + `}`, `"sub" occurs twice`},
		"sub twice, escaped":       {`{"sub":"alice","s\u0075b":"root",` + good + `}`, `"sub" occurs twice`},
		"aud twice":                {`{"sub":"alice",` + good + `,"aud":"x"}`, `"aud" occurs twice`},
		"SUB is not sub":           {`{"SUB":"root",` + good + `}`, "the name is empty"},
		"SUB beside sub":           {`{"sub":"alice","SUB":"root","Sub":"root",` + good + `}`, ""},
		"Exp is not exp":           {`{"sub":"alice","EXP":1,` + good + `}`, ""},
		"sub is null":              {`{"sub":null,` + good + `}`, "it is not a string"},
		"sub is an object":         {`{"sub":{"a":1},` + good + `}`, "it is not a string"},
		"half a surrogate":         {`{"sub":"alice\ud800",` + good + `}`, "not valid Unicode"},
		"sub with a NUL":           {`{"sub":"alice\u0000",` + good + `}`, "not allowed"},
		"sub with a line":          {`{"sub":"alice\n",` + good + `}`, "not allowed"},
		"exp is null":              {`{"sub":"alice","exp":null,` + good + `}`, "exp: it is not a number"},
		"exp is a text":            {`{"sub":"alice","exp":"9999999999",` + good + `}`, "exp: it is not a number"},
		"exp is below zero":        {`{"sub":"alice","exp":-1,` + good + `}`, "exp: it is not a number"},
		"exp overflows":            {`{"sub":"alice","exp":1e300,` + good + `}`, "exp: it is not a number"},
		"exp is no float":          {`{"sub":"alice","exp":1e999,` + good + `}`, "exp: it is not a number"},
		"nbf is far":               {`{"sub":"alice","nbf":253402300799,` + good + `}`, "not valid yet"},
		"info is a text":           {`{"sub":"alice",` + good + `,"info":"x"}`, "info: it is not a JSON object"},
		"info is a list":           {`{"sub":"alice",` + good + `,"info":[]}`, "info: it is not a JSON object"},
		"info is large":            {`{"sub":"alice",` + good + `,"info":{"a":"` + strings.Repeat("x", MaxInfo) + `"}}`, "info: it has 1032 bytes"},
		"info is deep":             {`{"sub":"alice",` + good + `,"info":{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}`, "nested deeper"},
		"channels is a list":       {`{"sub":"alice",` + good + `,"channels":["news"]}`, "channels: it is not a JSON object"},
		"channels twice the same":  {`{"sub":"alice",` + good + `,"channels":{"a":"sub","a":"pub"}}`, `channels: "a" occurs twice`},
		"an empty grant":           {`{"sub":"alice",` + good + `,"channels":{"a":""}}`, `channels: "a": it grants nothing`},
		"a grant is a list":        {`{"sub":"alice",` + good + `,"channels":{"a":["sub"]}}`, `channels: "a": it is not a string`},
		"a grant of a bad pattern": {`{"sub":"alice",` + good + `,"channels":{"a*":"sub"}}`, "a colon belongs before the *"},
		"a grant with braces":      {`{"sub":"alice",` + good + `,"channels":{"inbox:{user}":"sub"}}`, "character '{'"},
		"no object":                {`["sub"]`, "it is not a JSON object"},
		"null":                     {`null`, "the name is empty"},
		"not UTF-8":                {"{\"sub\":\"al\xff\"," + good + "}", "not UTF-8"},
		"text after it":            {`{"sub":"alice",` + good + `}{"sub":"root"}`, "invalid character"},
		"cut off":                  {`{"sub":"alice",` + good, "unexpected end"},
		"very deep":                {`{"sub":"alice",` + good + `,"x":` + strings.Repeat("[", 2500) + strings.Repeat("]", 2500) + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tokens.Verify(signWithHeader(t, `{"alg":"HS256"}`, jwt.SigningMethodHS256, secret, c.payload))
			if c.want == "" && (err != nil || got.User != "alice" || !got.Expires.IsZero()) {
				t.Fatalf("got %+v, %v", got, err)
			}
			if c.want != "" && (!errors.Is(err, ErrBadToken) || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got %+v, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestInfoAndGrantsArrive(t *testing.T) {
	tokens := mustTokens(t, Options{HS256: [][]byte{secret}})
	got, err := tokens.Verify(sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{
		"sub": "alice", "info": map[string]any{"name": "Alice <3"}, "channels": map[string]string{"chat:1": "sub"},
		"exp": float64(now.Add(time.Minute).UnixMilli()) / 1000,
	}))
	if err != nil || !json.Valid(got.Info) || got.Grants.Empty() || !got.Expires.Equal(now.Add(time.Minute)) {
		t.Errorf("got %+v, %s, %v", got, got.Info, err)
	}
}

// FuzzPayload verifies any payload with a valid signature. It must not panic, and accepted claims
// must be in bounds.
func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		`{"sub":"alice"}`, `{"sub":"alice","sub":"root"}`, `{"sub":"a","exp":1e300}`, `{"sub":"a","aud":["x"]}`, `null`, `{}`, `[`,
		`{"sub":"a","channels":{"chat:*":"sub pub"},"info":{"a":1}}`, `{"SUB":"a"}`, `{"sub":"a","exp":253402300799.9}`,
	} {
		f.Add(seed)
	}
	tokens := mustTokens(f, Options{HS256: [][]byte{secret}})
	f.Fuzz(func(t *testing.T, payload string) {
		got, err := tokens.Verify(signWithHeader(t, `{"alg":"HS256"}`, jwt.SigningMethodHS256, secret, payload))
		if err != nil {
			if !errors.Is(err, ErrBadToken) && !errors.Is(err, ErrExpired) {
				t.Fatalf("an unknown error: %v", err)
			}
			return
		}
		var plain map[string]any
		if json.Unmarshal([]byte(payload), &plain) != nil || plain["sub"] != got.User {
			t.Fatalf("%q is %+v", payload, got)
		}
		if len(got.Info) > MaxInfo || got.Info != nil && (got.Info[0] != '{' || !json.Valid(got.Info)) {
			t.Fatalf("info is %q", got.Info)
		}
		if !got.Expires.IsZero() && (got.Expires.Before(now) || got.Expires.Year() > 10000) {
			t.Fatalf("expires %v", got.Expires)
		}
	})
}
