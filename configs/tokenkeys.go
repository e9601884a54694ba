package configs

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"switchboard/broker/auth"
)

// tokenKey is an entry of auth.token_keys.
type tokenKey struct{ id, alg, file string }

// tokenKeys reads a section like
//
//	"2026-05": {alg: RS256, file: /run/secrets/token_key.pem}
func tokenKeys(node *yaml.Node) (keys []tokenKey, err error) {
	const section = "auth.token_keys"
	err = each(node, section, func(id string, value *yaml.Node) error {
		k := tokenKey{id: id}
		err := each(value, section+"."+id, func(name string, value *yaml.Node) (err error) {
			switch name {
			case "alg":
				k.alg, err = text(value)
			case "file":
				k.file, err = text(value)
			default:
				return unknownKey("alg", "file")
			}
			return err
		})
		if err == nil && (k.alg == "" || k.file == "") {
			err = errors.New("alg and file: both are needed")
		}
		keys = append(keys, k)
		return err
	})
	return keys, err
}

// namedKeys reads the key files of auth.token_keys.
func (a Auth) namedKeys() ([]auth.NamedKey, error) {
	var named []auth.NamedKey
	for _, entry := range a.TokenKeys {
		key := "auth.token_keys." + entry.id
		var content []byte
		var err error
		if entry.alg == "HS256" {
			var secret string
			secret, err = readOneSecret(key, entry.file, checkTokenSecret)
			content = []byte(secret)
		} else {
			content, err = readFile(key, entry.file)
		}
		if err != nil {
			return nil, err
		}
		named = append(named, auth.NamedKey{ID: entry.id, Alg: entry.alg, Text: content})
	}
	return named, nil
}

// UncheckedClaims returns the settings that auth.jwks_url needs and that are missing. Without them
// the broker accepts tokens for other services of the issuer, since an issuer signs for all with
// the same keys.
func (a Auth) UncheckedClaims() (missing []string) {
	if a.JWKSURL == "" {
		return nil
	}
	if len(a.Audience) == 0 {
		missing = append(missing, "auth.audience")
	}
	if len(a.Issuer) == 0 {
		missing = append(missing, "auth.issuer")
	}
	return missing
}

// remote returns the key set to fetch, nil for none.
func (a Auth) remote() (*auth.Remote, error) {
	if a.JWKSURL == "" {
		return nil, nil
	}
	r, err := auth.NewRemote(auth.RemoteOptions{URL: a.JWKSURL, Every: a.JWKSRefresh, Grace: a.JWKSGrace, Stale: a.JWKSStale})
	if err != nil {
		return nil, fmt.Errorf("auth.jwks_url: %w", err)
	}
	return r, nil
}
