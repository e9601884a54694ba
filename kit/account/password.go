package account

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"runtime"
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

// passwords computes and verifies credentials. A computation takes some 10 ms of a processor.
// Therefore only so many run at once that the broker keeps half of the processors.
type passwords struct {
	iterations, shortest int
	slots                chan struct{}
	dummyKey             []byte // derives the salts of unknown names
}

func newPasswords(o Options) passwords {
	return passwords{
		iterations: o.Iterations, shortest: o.MinPassword,
		slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), dummyKey: subkey(o.SigningKey, "dummy salts"),
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

// create returns credentials for a new password.
func (p *passwords) create(ctx context.Context, password string) (*credentials, error) {
	if len(password) < p.shortest || len(password) > MaxPassword || !utf8.ValidString(password) {
		return nil, wire.Errorf(wire.BadRequest, "password: it must have %d to %d bytes of UTF-8", p.shortest, MaxPassword)
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	c, err := p.derive(ctx, password, salt, p.iterations)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, wire.Errorf(wire.BadRequest, "password: it has a character that passwords cannot have (RFC 4013)")
	}
	return c, nil
}

// verify reports whether the password belongs to the credentials.
func (p *passwords) verify(ctx context.Context, password string, c *credentials) (bool, error) {
	if len(password) > MaxPassword {
		return false, nil
	}
	got, err := p.derive(ctx, password, c.Salt, c.Iterations)
	return err == nil && got != nil && subtle.ConstantTimeCompare(got.StoredKey, c.StoredKey) == 1, err
}

// derive computes credentials, or nil for a password that SASLprep (RFC 4013) refuses.
func (p *passwords) derive(ctx context.Context, password string, salt []byte, iterations int) (*credentials, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// dummy returns the credentials that stand for those of an unknown name. The salt is the same each
// time, as that of an account is. No password fits.
func (p *passwords) dummy(n name) *credentials {
	mac := hmac.New(sha256.New, p.dummyKey)
	mac.Write([]byte(n.digest))
	c := &credentials{
		Salt: mac.Sum(nil)[:saltSize], Iterations: p.iterations,
		StoredKey: make([]byte, sha256.Size), ServerKey: make([]byte, sha256.Size),
	}
	_, _ = rand.Read(c.StoredKey)
	_, _ = rand.Read(c.ServerKey)
	return c
}
