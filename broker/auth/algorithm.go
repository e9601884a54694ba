package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"fmt"

	"github.com/golang-jwt/jwt/v5"
)

// minRSA is the shortest RSA key accepted, in bits (RFC 7518 §3.3).
const minRSA = 2048

const hs256 = "HS256"

// asymmetric are the algorithms with public keys; whoever verifies cannot sign. HS256 is the only
// other one.
var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"}

// verifier is a key and the one algorithm that it serves. A token's alg chooses among the keys of that
// algorithm, so that a public key never serves as a shared secret, whatever the token says (RFC 8725 §3.1).
type verifier struct {
	id, alg string // id is the kid, or empty
	key     jwt.VerificationKey
}

// fit says what keeps a public key from serving alg.
func fit(alg string, key any) error {
	switch alg {
	case "RS256", "RS384", "RS512", "PS256":
		if key, ok := key.(*rsa.PublicKey); ok {
			if key.N.BitLen() < minRSA {
				return fmt.Errorf("has %d bits, at least %d are needed", key.N.BitLen(), minRSA)
			}
			return nil
		}
	case "ES256", "ES384":
		if key, ok := key.(*ecdsa.PublicKey); ok {
			if want := curves[alg]; key.Curve != want {
				return fmt.Errorf("lies on the curve %s, %s needs %s", key.Curve.Params().Name, alg, want.Params().Name)
			}
			return nil
		}
	case "EdDSA":
		if _, ok := key.(ed25519.PublicKey); ok {
			return nil
		}
	default:
		return fmt.Errorf("%.20q is no algorithm for public keys that is known here", alg)
	}
	return fmt.Errorf("the PEM block holds a %T", key)
}

var curves = map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384()}
