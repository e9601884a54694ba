package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/golang-jwt/jwt/v5"
)

// minSecret is the least length of a secret for HS256, in bytes (RFC 7518 §3.2).
const minSecret = 32

// signingKey is a key of tokens and its algorithm.
type signingKey struct {
	method jwt.SigningMethod
	sign   any // nil for a public key
	verify any
}

// signingKey reads the key from a file, or from the variables of the broker's settings.
func (a *app) signingKey(path string) (signingKey, error) {
	if path == "" {
		if secret := a.getenv("SWITCHBOARD_AUTH_HS256_SECRET"); secret != "" {
			return secretKey(secret)
		}
		if path = a.getenv("SWITCHBOARD_AUTH_HS256_SECRET_FILE"); path == "" {
			return signingKey{}, usage("--signing-key: missing")
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return signingKey{}, fmt.Errorf("--signing-key: %w", err)
	}
	key, err := parseKey(text)
	if err != nil {
		return key, fmt.Errorf("--signing-key: %s: %w", path, err)
	}
	return key, nil
}

// parseKey returns the key in a PEM file, or the first secret in a file of secrets.
func parseKey(text []byte) (signingKey, error) {
	if block, _ := pem.Decode(text); block != nil {
		return pemKey(block)
	}
	if secrets := secretsIn(string(text)); len(secrets) > 0 {
		return secretKey(secrets[0])
	}
	return signingKey{}, errors.New("there is no key in it")
}

func secretKey(secret string) (signingKey, error) {
	if len(secret) < minSecret {
		return signingKey{}, fmt.Errorf("the secret has less than %d bytes; `openssl rand -hex 32` makes a good one", minSecret)
	}
	return signingKey{jwt.SigningMethodHS256, []byte(secret), []byte(secret)}, nil
}

// pemKey returns the private or public key in a block.
func pemKey(block *pem.Block) (signingKey, error) {
	for _, parse := range []func([]byte) (any, error){
		x509.ParsePKCS8PrivateKey,
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
		x509.ParsePKIXPublicKey,
	} {
		if key, err := parse(block.Bytes); err == nil {
			return keyOf(key)
		}
	}
	if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
		return keyOf(cert.PublicKey)
	}
	return signingKey{}, fmt.Errorf("the block %q is not a key that this command can read", block.Type)
}

func keyOf(key any) (signingKey, error) {
	k := signingKey{verify: key}
	if private, ok := key.(crypto.Signer); ok {
		k.sign, k.verify = key, private.Public()
	}
	switch public := k.verify.(type) {
	case *rsa.PublicKey:
		k.method = jwt.SigningMethodRS256
	case ed25519.PublicKey:
		k.method = jwt.SigningMethodEdDSA
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P256() {
			k.method = jwt.SigningMethodES256
		}
	}
	if k.method == nil {
		return k, errors.New("only RSA, Ed25519 and P-256 keys are supported")
	}
	return k, nil
}
