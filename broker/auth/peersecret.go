package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// PeerSecretBytes is the least length of a peer secret. Anything that connects to the links
// receives a proof and could try secrets on it, so the secret must be too long to guess.
const PeerSecretBytes = 32

// peerProtocol is part of every proof, so that a proof is valid in one version only.
const peerProtocol = "switchboard peer link 2"

// PeerSecret is shared by the instances, which prove to each other that they know it. It is never
// sent. The zero value is no secret.
type PeerSecret struct{ key []byte }

// NewPeerSecret returns secret as a PeerSecret. An empty secret means none. A short one is an
// error.
func NewPeerSecret(secret string) (PeerSecret, error) {
	if n := len(secret); n > 0 && n < PeerSecretBytes {
		return PeerSecret{}, fmt.Errorf("it has %d bytes, at least %d are needed; make one with: openssl rand -hex 32", n, PeerSecretBytes)
	}
	return PeerSecret{[]byte(secret)}, nil
}

// Open reports whether no secret is configured. Then no proofs are exchanged.
func (s PeerSecret) Open() bool { return len(s.key) == 0 }

// PeerRole is the end of a link that makes a proof. It is part of the proof, so that the proof of
// one end is not valid for the other.
type PeerRole string

// The ends of a link.
const (
	PeerDialer   PeerRole = "dialer"
	PeerListener PeerRole = "listener"
)

// PeerNonce is used in one handshake only.
type PeerNonce [32]byte

// NewPeerNonce makes a nonce.
func NewPeerNonce() (n PeerNonce) {
	_, _ = rand.Read(n[:]) // Read never fails
	return n
}

// PeerLink identifies one handshake: both server ids and a nonce from each end.
type PeerLink struct {
	Dialer, Listener           string
	DialerNonce, ListenerNonce PeerNonce
}

// Prove returns the proof for one end of a link: HMAC-SHA256 with the secret over the protocol's
// version, the role, both ids and both nonces.
func (s PeerSecret) Prove(by PeerRole, l PeerLink) []byte {
	mac := hmac.New(sha256.New, s.key)
	for _, part := range []string{
		peerProtocol, string(by), l.Dialer, l.Listener, string(l.DialerNonce[:]), string(l.ListenerNonce[:]),
	} {
		var size [4]byte // of the part; without it, two lists of parts could give the same bytes
		binary.BigEndian.PutUint32(size[:], uint32(len(part)))
		_, _ = mac.Write(size[:])
		_, _ = mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// Verify reports whether proof is the result of Prove(by, l). It takes the same time for every
// wrong proof. Without a secret no proof is valid.
func (s PeerSecret) Verify(by PeerRole, l PeerLink, proof []byte) bool {
	return !s.Open() && hmac.Equal(s.Prove(by, l), proof)
}
