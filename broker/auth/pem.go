package auth

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// minRSA is the shortest RSA key accepted, in bits (RFC 7518 §3.3).
const minRSA = 2048

func (t *Tokens) readKeys(opts Options) error {
	for i, secret := range opts.HS256 {
		if len(secret) == 0 {
			return fmt.Errorf("HS256 secret %d is empty", i+1)
		}
		if bytes.Contains(secret, []byte("-----BEGIN ")) {
			// Whoever may read the public key could sign with it.
			return fmt.Errorf("HS256 secret %d is a PEM file: it belongs to RS256 or EdDSA", i+1)
		}
		t.weak = t.weak || len(secret) < MinSecret
		t.add(jwt.SigningMethodHS256, secret)
	}
	for i, text := range opts.RS256 {
		keys, err := publicKeys[*rsa.PublicKey](text)
		if err != nil {
			return fmt.Errorf("RS256 key %d: %w", i+1, err)
		}
		for _, key := range keys {
			if key.N.BitLen() < minRSA {
				return fmt.Errorf("RS256 key %d has %d bits, at least %d are needed", i+1, key.N.BitLen(), minRSA)
			}
			t.add(jwt.SigningMethodRS256, key)
		}
	}
	for i, text := range opts.EdDSA {
		keys, err := publicKeys[ed25519.PublicKey](text)
		if err != nil {
			return fmt.Errorf("EdDSA key %d: %w", i+1, err)
		}
		for _, key := range keys {
			t.add(jwt.SigningMethodEdDSA, key)
		}
	}
	return nil
}

func (t *Tokens) add(method jwt.SigningMethod, key jwt.VerificationKey) {
	set := t.keys[method.Alg()]
	set.Keys = append(set.Keys, key)
	t.keys[method.Alg()] = set
}

// publicKeys are the keys of all PEM blocks in text, each of which must hold a K.
func publicKeys[K any](text []byte) ([]K, error) {
	var keys []K
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		parsed, err := publicKey(block)
		if err != nil {
			return nil, err
		}
		key, ok := parsed.(K)
		if !ok {
			return nil, fmt.Errorf("the PEM block holds a %T", parsed)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no PEM block in it")
	}
	return keys, nil
}

func publicKey(block *pem.Block) (any, error) {
	switch {
	case block.Type == "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case block.Type == "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case block.Type == "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return certificate.PublicKey, nil
	case strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, errors.New("this is the private key: verifying needs the public one only")
	}
	return nil, fmt.Errorf("a PEM block of type %q is no public key", block.Type)
}
