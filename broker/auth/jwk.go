package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// maxKeys is the most keys of a fetched set. Large providers have three to ten.
const maxKeys = 64

// maxRSA is the longest RSA key of a fetched set, in bits. The time to verify grows with the
// square.
const maxRSA = 8192

// jwk is a JSON Web Key (RFC 7517), with the fields of a public key for signatures. No library is
// used, since the libraries do not keep removed keys for a grace period, and are longer than this
// file.
type jwk struct {
	Kty    string   `json:"kty"`
	Use    string   `json:"use"`
	KeyOps []string `json:"key_ops"`
	Alg    string   `json:"alg"`
	Kid    string   `json:"kid"`
	Crv    string   `json:"crv"`
	N      string   `json:"n"`
	E      string   `json:"e"`
	X      string   `json:"x"`
	Y      string   `json:"y"`
}

// parseKeySet parses a JWK set. It ignores keys that are not for signatures, and skips invalid keys
// and keys of an unknown kind (RFC 7517 §5). skipped describes the last key that was skipped. A set
// without usable keys is an error.
func parseKeySet(text []byte) (keys []verifier, skipped error, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, nil, errors.New("it is not a JSON Web Key set")
	}
	if len(set.Keys) > maxKeys {
		return nil, nil, fmt.Errorf("it has %d keys, at most %d are allowed", len(set.Keys), maxKeys)
	}
	for i, raw := range set.Keys {
		var k jwk
		if err := json.Unmarshal(raw, &k); err != nil {
			skipped = fmt.Errorf("key %d is not a JSON Web Key", i+1)
			continue
		}
		if k.Use == "enc" || len(k.KeyOps) > 0 && !slices.Contains(k.KeyOps, "verify") {
			continue
		}
		v, err := k.verifier()
		if err != nil {
			skipped = fmt.Errorf("key %d (kid %.40q): %w", i+1, k.Kid, err)
			continue
		}
		keys = append(keys, v)
	}
	if len(keys) == 0 {
		return nil, skipped, errors.New("it has no usable key")
	}
	return keys, skipped, nil
}

// verifier returns the key with its algorithm, or the usual algorithm of its kind if it names none.
// It refuses a symmetric key, since a published secret is not secret.
func (k jwk) verifier() (v verifier, err error) {
	v = verifier{id: k.Kid, alg: k.Alg}
	if len(k.Kid) > maxKid {
		return v, errors.New("the kid is too long")
	}
	usual := ""
	switch k.Kty {
	case "RSA":
		usual = "RS256"
		v.key, err = k.rsa()
	case "EC":
		usual = map[string]string{"P-256": "ES256", "P-384": "ES384"}[k.Crv]
		v.key, err = k.ec(usual)
	case "OKP":
		usual = "EdDSA"
		v.key, err = k.okp()
	default:
		return v, fmt.Errorf("kty %.20q is not a supported kind of public key", k.Kty)
	}
	if v.alg == "" {
		v.alg = usual
	}
	if err == nil {
		err = checkAlgorithm(v.alg, v.key)
	}
	return v, err
}

func (k jwk) rsa() (any, error) {
	n, err1 := decode64(k.N)
	e, err2 := decode64(k.E)
	if errors.Join(err1, err2) != nil || len(n) > maxRSA/8 || len(e) == 0 || len(e) > 4 {
		return nil, errors.New("n or e is not a base64url number of a usual size")
	}
	exponent := new(big.Int).SetBytes(e).Int64()
	if exponent < 3 || exponent > 1<<31-1 || exponent%2 == 0 {
		return nil, errors.New("e is out of range")
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(exponent)}, nil
}

func (k jwk) ec(alg string) (any, error) {
	curve, ok := curves[alg]
	if !ok {
		return nil, fmt.Errorf("crv %.20q is not supported", k.Crv)
	}
	x, err1 := decode64(k.X)
	y, err2 := decode64(k.Y)
	size := (curve.Params().BitSize + 7) / 8
	if errors.Join(err1, err2) != nil || len(x) != size || len(y) != size {
		return nil, fmt.Errorf("x or y is not %d bytes in base64url", size) // RFC 7518 §6.2.1.2
	}
	return ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, x, y)) // checks that the point is on the curve
}

func (k jwk) okp() (any, error) {
	x, err := decode64(k.X)
	if k.Crv != "Ed25519" || err != nil || len(x) != ed25519.PublicKeySize {
		return nil, errors.New("it is not an Ed25519 key of 32 bytes in base64url")
	}
	return ed25519.PublicKey(x), nil
}

// decode64 decodes base64url. It accepts padding, which some endpoints add against the standard.
func decode64(text string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}

// fingerprint identifies a key without a kid. It hashes the key's numbers as text, and is valid
// within one process only.
func (v verifier) fingerprint() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%v", v.key))
}
