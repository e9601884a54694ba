package account

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"unicode/utf8"

	"github.com/xdg-go/scram"

	"switchboard/internal/wire"
)

// credentials verify a password and a SCRAM proof. They are the value of $$scram.
type credentials struct {
	Salt       []byte `json:"salt"`
	Iterations int    `json:"iterations"`
	StoredKey  []byte `json:"stored_key"`
	ServerKey  []byte `json:"server_key"`
}

const saltSize = 16 // bytes

// stored returns the credentials as the library takes them.
func (c *credentials) stored() scram.StoredCredentials {
	return scram.StoredCredentials{
		KeyFactors: scram.KeyFactors{Salt: string(c.Salt), Iters: c.Iterations}, StoredKey: c.StoredKey, ServerKey: c.ServerKey,
	}
}

// passwords computes and verifies credentials. A computation takes some 10 ms of a processor, so
// each one waits for its turn.
type passwords struct {
	iterations, shortest int
	formerIterations     int // of older passwords; 0 for none
	turns                *turns
	dummyKey             []byte // derives the salts and iterations of unknown names
}

func newPasswords(o Options) passwords {
	return passwords{
		iterations: o.Iterations, shortest: o.MinPassword, formerIterations: o.FormerIterations,
		turns: newTurns(), dummyKey: subkey(o.SigningKey, "dummy salts"),
	}
}

// subkey derives a key for one purpose from the signing key.
func subkey(key []byte, purpose string) []byte {
	k, err := hkdf.Key(sha256.New, key, nil, "switchboard accounts: "+purpose, sha256.Size)
	if err != nil {
		panic(err) // only for keys that are too long
	}
	return k
}

// checkNew returns an error if a text cannot be a new password.
func (p *passwords) checkNew(password string) error {
	if len(password) < p.shortest || len(password) > MaxPassword || !utf8.ValidString(password) {
		return wire.Errorf(wire.BadRequest, "password: it must have %d to %d bytes of UTF-8", p.shortest, MaxPassword)
	}
	return nil
}

// create returns credentials for a new password. For queues see turns.take.
func (p *passwords) create(ctx context.Context, password string, queues ...string) (*credentials, error) {
	if err := p.checkNew(password); err != nil {
		return nil, err
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	c, err := p.derive(ctx, password, salt, p.iterations, queues)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, wire.Errorf(wire.BadRequest, "password: it has a character that passwords cannot have (RFC 4013)")
	}
	return c, nil
}

// verify reports whether the password belongs to the credentials. For queues see turns.take.
func (p *passwords) verify(ctx context.Context, password string, c *credentials, queues ...string) (bool, error) {
	if len(password) > MaxPassword {
		return false, nil
	}
	got, err := p.derive(ctx, password, c.Salt, c.Iterations, queues)
	return err == nil && got != nil && subtle.ConstantTimeCompare(got.StoredKey, c.StoredKey) == 1, err
}

// derive computes credentials, or nil for a password that SASLprep (RFC 4013) refuses.
func (p *passwords) derive(ctx context.Context, password string, salt []byte, iterations int, queues []string) (*credentials, error) {
	done, err := p.turns.take(ctx, queues...)
	if err != nil {
		return nil, err
	}
	defer done()
	client, err := scram.SHA256.NewClient("", password, "")
	if err != nil {
		return nil, nil //nolint:nilerr // the caller must not learn the text, which may quote the password
	}
	s, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: iterations})
	if err != nil {
		return nil, err
	}
	return &credentials{Salt: salt, Iterations: iterations, StoredKey: s.StoredKey, ServerKey: s.ServerKey}, nil
}

// dummy returns the credentials that stand for those of an unknown name. Salt and iterations are
// the same each time, as those of an account are. Half of the names have the former iterations, as
// some accounts do. No password fits.
func (p *passwords) dummy(n name) *credentials {
	mac := hmac.New(sha256.New, p.dummyKey)
	mac.Write([]byte(n.digest))
	sum := mac.Sum(nil)
	c := &credentials{
		Salt: sum[:saltSize:saltSize], Iterations: p.iterations,
		StoredKey: make([]byte, sha256.Size), ServerKey: make([]byte, sha256.Size),
	}
	if p.formerIterations != 0 && sum[saltSize]&1 == 1 {
		c.Iterations = p.formerIterations
	}
	_, _ = rand.Read(c.StoredKey)
	_, _ = rand.Read(c.ServerKey)
	return c
}
