package auth

import (
	"bytes"
	"strings"
	"testing"
)

func TestPeerSecretLength(t *testing.T) {
	for secret, ok := range map[string]bool{
		"": true, "change-me": false, strings.Repeat("x", PeerSecretBytes-1): false, strings.Repeat("x", PeerSecretBytes): true,
	} {
		if s, err := NewPeerSecret(secret); (err == nil) != ok || s.Open() != (secret == "" || !ok) {
			t.Errorf("%d bytes: %v", len(secret), err)
		}
	}
}

// TestPeerProof checks that a proof is valid only for its secret, role, ids and nonces.
func TestPeerProof(t *testing.T) {
	s, _ := NewPeerSecret(strings.Repeat("s", PeerSecretBytes))
	other, _ := NewPeerSecret(strings.Repeat("o", PeerSecretBytes))
	l := PeerLink{Dialer: "a", Listener: "b", DialerNonce: NewPeerNonce(), ListenerNonce: NewPeerNonce()}
	proof := s.Prove(PeerDialer, l)
	if !s.Verify(PeerDialer, l, proof) {
		t.Fatal("a valid proof is refused")
	}
	change := func(f func(*PeerLink)) PeerLink {
		c := l
		f(&c)
		return c
	}
	for name, accepted := range map[string]bool{
		"the other role":           s.Verify(PeerListener, l, proof),
		"another secret":           other.Verify(PeerDialer, l, proof),
		"no secret":                PeerSecret{}.Verify(PeerDialer, l, proof),
		"no secret, its own proof": PeerSecret{}.Verify(PeerDialer, l, PeerSecret{}.Prove(PeerDialer, l)),
		"swapped ids":              s.Verify(PeerDialer, change(func(c *PeerLink) { c.Dialer, c.Listener = "b", "a" }), proof),
		"ids that run together":    s.Verify(PeerDialer, change(func(c *PeerLink) { c.Dialer, c.Listener = "ab", "" }), proof),
		"another dialer's nonce":   s.Verify(PeerDialer, change(func(c *PeerLink) { c.DialerNonce = NewPeerNonce() }), proof),
		"another listener's nonce": s.Verify(PeerDialer, change(func(c *PeerLink) { c.ListenerNonce = NewPeerNonce() }), proof),
		"swapped nonces":           s.Verify(PeerDialer, change(func(c *PeerLink) { c.DialerNonce, c.ListenerNonce = l.ListenerNonce, l.DialerNonce }), proof),
		"a part":                   s.Verify(PeerDialer, l, proof[:31]),
		"nothing":                  s.Verify(PeerDialer, l, nil),
		"one bit":                  s.Verify(PeerDialer, l, append(bytes.Clone(proof[:31]), proof[31]^1)),
	} {
		if accepted {
			t.Errorf("%s: the proof is accepted", name)
		}
	}
}
