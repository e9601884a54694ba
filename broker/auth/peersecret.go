package auth

import "switchboard/internal/wire"

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
