package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"

	"switchboard/internal/wire"
)

// digest stands for a secret. Digests have one length, so comparing two of them in
// constant time tells nothing about the length of the secret either.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

func (d digest) equal(other digest) bool {
	return subtle.ConstantTimeCompare(d[:], other[:]) == 1
}

// Keys are the API keys of the HTTP API. The zero value has none and lets everybody in.
type Keys struct {
	digests []digest
}

// NewKeys takes the keys as configured; several of them make rotation possible. An
// empty or padded one is an error: it comes from an unset variable or a line break
// in a secret file.
func NewKeys(keys []string) (Keys, error) {
	var k Keys
	for i, key := range keys {
		if key == "" || strings.TrimSpace(key) != key {
			return Keys{}, fmt.Errorf("API key %d of %d is empty or has white space around it", i+1, len(keys))
		}
		k.digests = append(k.digests, digestOf(key))
	}
	return k, nil
}

// Open reports whether no keys are configured, so that everybody may call.
func (k Keys) Open() bool { return len(k.digests) == 0 }

// Check is nil when authorization, the value of that header, is "Bearer <key>" with one of the keys, or
// when the API is open. Otherwise it is a *wire.Error with code unauthorized.
func (k Keys) Check(authorization string) error {
	if k.Open() {
		return nil
	}
	// RFC 9110 §11.1: the scheme is case-insensitive.
	scheme, key, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(key) == "" {
		return wire.Errorf(wire.Unauthorized, "this call needs the header Authorization: Bearer <key>")
	}
	given, known := digestOf(strings.TrimSpace(key)), false
	for _, d := range k.digests {
		known = d.equal(given) || known // all are compared, whichever fits
	}
	if !known {
		return wire.Errorf(wire.Unauthorized, "unknown API key")
	}
	return nil
}

// PeerSecret is what instances show each other. The zero value is none and is equal
// to everything.
type PeerSecret struct {
	digest digest
	set    bool
}

// NewPeerSecret keeps secret; an empty one is none.
func NewPeerSecret(secret string) PeerSecret {
	return PeerSecret{digest: digestOf(secret), set: secret != ""}
}

// Open reports whether no secret is configured, so that every peer is let in.
func (s PeerSecret) Open() bool { return !s.set }

// Check is nil when given is the secret, or when none is configured. Otherwise it
// is a *wire.Error with code unauthorized.
func (s PeerSecret) Check(given string) error {
	if s.set && !s.digest.equal(digestOf(given)) {
		return wire.Errorf(wire.Unauthorized, "the peer's secret is not ours")
	}
	return nil
}
