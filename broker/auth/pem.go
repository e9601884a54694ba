package auth

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// CheckSecret returns why an HS256 secret is not valid. The error begins with a verb and does not
// contain the secret.
func CheckSecret(secret []byte) error {
	if len(secret) == 0 {
		return errors.New("is empty")
	}
	if bytes.Contains(secret, []byte("-----BEGIN ")) {
		// Public keys are not secret: anyone could sign with it.
		return errors.New("is a PEM file: it belongs to RS256 or EdDSA")
	}
	if len(secret) < MinSecret { // a client with one token can find a short secret by trying
		return fmt.Errorf("has less than %d bytes (RFC 7518 §3.2)", MinSecret)
	}
	return nil
}

// publicKeys returns the keys of all PEM blocks in text. Each must be usable with alg.
func publicKeys(alg string, text []byte) ([]any, error) {
	var keys []any
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		key, err := publicKey(block)
		if err != nil {
			return nil, err
		}
		if err := checkAlgorithm(alg, key); err != nil {
			return nil, err
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
	return nil, fmt.Errorf("a PEM block of type %q is not a public key", block.Type)
}
