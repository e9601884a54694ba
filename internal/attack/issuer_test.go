//go:build long

package attack

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Key ids (kid) of the issuer.
const (
	kidHMAC      = "shared"
	kidRSA       = "public"
	kidRevocable = "revocable" // revoked during the test
)

// An issuer signs the users' tokens.
type issuer struct {
	shared, revocable []byte
	rsa               *rsa.PrivateKey
	rsaPEM            []byte // the public key
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{
		shared: []byte(rand.Text() + rand.Text()), revocable: []byte(rand.Text() + rand.Text()),
		rsa: key, rsaPEM: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
	}
}

// claims returns the claims of a token that is valid for one hour. Claims in others replace them;
// nil removes one.
func claims(user string, others map[string]any) string {
	c := map[string]any{"sub": user, "iss": "login", "aud": "broker", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(c, others)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // a mistake in this package
	}
	return string(text)
}

// header returns the header of a token.
func header(alg, kid string) string { return fmt.Sprintf(`{"typ":"JWT","alg":%q,"kid":%q}`, alg, kid) }

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// sign returns a signed token with any header and payload.
func sign(header, payload string, method jwt.SigningMethod, key any) string {
	unsigned := encode(header) + "." + encode(payload)
	signature, err := method.Sign(unsigned, key)
	if err != nil {
		panic(err) // a mistake in this package
	}
	return unsigned + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// token returns a valid token.
func (i *issuer) token(user string) string {
	return sign(header("HS256", kidHMAC), claims(user, nil), jwt.SigningMethodHS256, i.shared)
}

// tokenWith returns a signed token with other claims.
func (i *issuer) tokenWith(user string, others map[string]any) string {
	return sign(header("HS256", kidHMAC), claims(user, others), jwt.SigningMethodHS256, i.shared)
}
