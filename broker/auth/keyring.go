package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// kidAlg identifies a key by the kid and the alg of a token.
type kidAlg struct{ id, alg string }

// keyring holds the configured keys. It is immutable.
type keyring struct {
	named    map[kidAlg]jwt.VerificationKey
	namedIDs map[string]bool                   // the kids of named
	unnamed  map[string]jwt.VerificationKeySet // by alg; tried one after the other
}

func newKeyring(opts Options) (keyring, error) {
	r := keyring{map[kidAlg]jwt.VerificationKey{}, map[string]bool{}, map[string]jwt.VerificationKeySet{}}
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

func (r *keyring) addNamed(key NamedKey) error {
	switch {
	case key.ID == "" || len(key.ID) > maxKid:
		return fmt.Errorf("the name (kid) must have 1 to %d bytes", maxKid)
	case r.namedIDs[key.ID]:
		return errors.New("there are two keys with that name")
	case key.Alg == hs256:
		if err := CheckSecret(key.Text); err != nil {
			return fmt.Errorf("the secret %w", err)
		}
		r.add(verifier{key.ID, hs256, key.Text})
		return nil
	case !slices.Contains(asymmetric, key.Alg):
		return fmt.Errorf("%.20q is not a supported algorithm: %s, %s", key.Alg, hs256, strings.Join(asymmetric, ", "))
	}
	keys, err := publicKeys(key.Alg, key.Text)
	if err == nil && len(keys) > 1 {
		err = errors.New("it has more than one key")
	}
	if err == nil {
		r.add(verifier{key.ID, key.Alg, keys[0]})
	}
	return err
}

func (r *keyring) add(v verifier) {
	if v.id != "" {
		r.named[kidAlg{v.id, v.alg}], r.namedIDs[v.id] = v.key, true
		return
	}
	set := r.unnamed[v.alg]
	set.Keys = append(set.Keys, v.key)
	r.unnamed[v.alg] = set
}

// methods returns the algorithms that have a key.
func (r *keyring) methods() map[string]bool {
	all := map[string]bool{}
	for name := range r.named {
		all[name.alg] = true
	}
	for alg := range r.unnamed {
		all[alg] = true
	}
	return all
}
