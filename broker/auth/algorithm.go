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

// asymmetric are the supported algorithms with public keys. HS256 is the only supported one with a
// shared secret.
var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"}

// verifier is a key and its only algorithm. A token is verified only with keys of its alg, so that
// a forged alg cannot turn a public key into a shared secret (RFC 8725 §3.1).
type verifier struct {
	id, alg string // id is the kid, or empty
	key     jwt.VerificationKey
}

// checkAlgorithm returns an error if a public key cannot be used with alg.
func checkAlgorithm(alg string, key any) error {
	switch alg {
	case "RS256", "RS384", "RS512", "PS256":
		if key, ok := key.(*rsa.PublicKey); ok {
			if key.N.BitLen() < minRSA {
				return fmt.Errorf("it has %d bits, at least %d are needed", key.N.BitLen(), minRSA)
			}
			return nil
		}
	case "ES256", "ES384":
		if key, ok := key.(*ecdsa.PublicKey); ok {
			if want := curves[alg]; key.Curve != want {
				return fmt.Errorf("it is on the curve %s, but %s needs %s", key.Curve.Params().Name, alg, want.Params().Name)
			}
			return nil
		}
	case "EdDSA":
		if _, ok := key.(ed25519.PublicKey); ok {
			return nil
		}
	default:
		return fmt.Errorf("%.20q is not a supported algorithm for public keys", alg)
	}
	return fmt.Errorf("it is a %T, which does not fit %s", key, alg)
}

var curves = map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384()}
