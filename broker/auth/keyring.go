package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// keyID is how a token names its key.
type keyID struct{ id, alg string }

// ring is the keys that were configured. It does not change.
type ring struct {
	named   map[keyID]jwt.VerificationKey
	known   map[string]bool                   // kids of named
	unnamed map[string]jwt.VerificationKeySet // by alg; tried in turn
}

func newRing(opts Options) (ring, error) {
	r := ring{map[keyID]jwt.VerificationKey{}, map[string]bool{}, map[string]jwt.VerificationKeySet{}}
	for i, secret := range opts.HS256 {
		if err := CheckSecret(secret); err != nil {
			return r, fmt.Errorf("HS256 secret %d %w", i+1, err)
		}
		r.add(verifier{alg: hs256, key: secret})
	}
	for _, list := range []struct {
		alg   string
		texts [][]byte
	}{{"RS256", opts.RS256}, {"EdDSA", opts.EdDSA}} {
		for i, text := range list.texts {
			keys, err := publicKeys(list.alg, text)
			if err != nil {
				return r, fmt.Errorf("%s key %d: %w", list.alg, i+1, err)
			}
			for _, key := range keys {
				r.add(verifier{alg: list.alg, key: key})
			}
		}
	}
	for _, key := range opts.Named {
		if err := r.addNamed(key); err != nil {
			return r, fmt.Errorf("key %.40q: %w", key.ID, err)
		}
	}
	return r, nil
}

func (r *ring) addNamed(key NamedKey) error {
	switch {
	case key.ID == "" || len(key.ID) > maxKeyID:
		return fmt.Errorf("the name (kid) must have 1 to %d bytes", maxKeyID)
	case r.known[key.ID]:
		return errors.New("there are two of that name")
	case key.Alg == hs256:
		if err := CheckSecret(key.Text); err != nil {
			return fmt.Errorf("the secret %w", err)
		}
		r.add(verifier{key.ID, hs256, key.Text})
		return nil
	case !slices.Contains(asymmetric, key.Alg):
		return fmt.Errorf("%.20q is no algorithm that is known here: %s, %s", key.Alg, hs256, strings.Join(asymmetric, ", "))
	}
	keys, err := publicKeys(key.Alg, key.Text)
	if err == nil && len(keys) > 1 {
		err = errors.New("there is more than one key in it")
	}
	if err == nil {
		r.add(verifier{key.ID, key.Alg, keys[0]})
	}
	return err
}

func (r *ring) add(v verifier) {
	if v.id != "" {
		r.named[keyID{v.id, v.alg}], r.known[v.id] = v.key, true
		return
	}
	set := r.unnamed[v.alg]
	set.Keys = append(set.Keys, v.key)
	r.unnamed[v.alg] = set
}

// methods are the algorithms for which there is a key.
func (r *ring) methods() map[string]bool {
	all := map[string]bool{}
	for name := range r.named {
		all[name.alg] = true
	}
	for alg := range r.unnamed {
		all[alg] = true
	}
	return all
}
