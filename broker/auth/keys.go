package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"switchboard/internal/wire"
)

// digest is the SHA-256 of a secret. Digests have the same length, so a comparison in constant time
// does not reveal the length of the secret.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

func (d digest) equal(other digest) bool {
	return subtle.ConstantTimeCompare(d[:], other[:]) == 1
}

// The scopes of API keys. ScopeAdmin includes the others.
const (
	ScopePush  = "push"  // send messages to clients
	ScopeRead  = "read"  // read members, users and histories
	ScopeAdmin = "admin" // everything
)

var scopes = []string{ScopePush, ScopeRead, ScopeAdmin}

// The prefixes of an entry.
const (
	digestPrefix = "sha256:" // the key's digest follows
	plainPrefix  = "plain:"  // the key itself follows
)

// MinKey is the least length of an API key, in bytes.
const MinKey = 16

// KeyPrefix begins every key that NewKey makes, so that people and secret scanners recognise a
// leaked key in a repository or a log.
const KeyPrefix = "swb_"

// Keys are the API keys of the HTTP API. The zero value has no keys and allows every call.
type Keys struct {
	list []apiKey
}

type apiKey struct {
	name   string // for messages
	digest digest
	scopes []string
	plain  bool // configured in clear text
}

// NewKeys parses configured entries. Several keys make rotation possible. An entry is the digest
// of a key or the key itself, its scopes and optionally a name:
//
//	sha256:<64 hex digits> push+read billing
//	plain:<key of 16 bytes or more> push+read billing
//
// A plain entry without scopes has all of them. Anything else is an error, so that a comment or a
// broken line never becomes a key.
//
// The digest is SHA-256. Slow hashes like bcrypt protect passwords, which can be guessed. A key
// from NewKey has 256 random bits and cannot be guessed. A slow hash would take milliseconds of
// every call, and any client could cause that with an invalid key.
func NewKeys(entries []string) (Keys, error) {
	var k Keys
	for i, entry := range entries {
		key, err := parseKey(entry)
		if err != nil {
			return Keys{}, fmt.Errorf("API key %d of %d: %w", i+1, len(entries), err)
		}
		if key.name == "" {
			key.name = fmt.Sprintf("%d of %d", i+1, len(entries))
		}
		k.list = append(k.list, key)
	}
	return k, nil
}

// CheckEntry returns why an entry is not valid. The error does not contain the entry.
func CheckEntry(entry string) error {
	_, err := parseKey(entry)
	return err
}

// parseKey parses an entry. Its errors contain nothing that may be a key or a digest.
func parseKey(entry string) (key apiKey, err error) {
	if entry == "" || strings.TrimSpace(entry) != entry {
		return apiKey{}, errors.New("it is empty or has white space around it")
	}
	fields := strings.Fields(entry)
	form, text, _ := strings.Cut(fields[0], ":")
	switch form += ":"; form {
	case digestPrefix:
		err = key.setDigest(text, len(fields))
	case plainPrefix:
		err = key.setKey(text)
	default:
		for _, prefix := range []string{digestPrefix, plainPrefix} {
			if strings.EqualFold(form, prefix) {
				return apiKey{}, fmt.Errorf("%s is written in lower case", prefix)
			}
		}
		return apiKey{}, errors.New("want the entry that `broker key` prints (sha256:…), or plain:<key> and the scopes")
	}
	switch {
	case err != nil:
		return apiKey{}, err
	case len(fields) > 3:
		return apiKey{}, errors.New("after the scopes only a name, of one word, is allowed")
	case len(fields) > 1:
		key.scopes = strings.Split(fields[1], "+")
	}
	if CheckScopes(key.scopes) != nil { // its error contains the word, which may be part of a key
		return apiKey{}, fmt.Errorf("the second word is not made of scopes (%s), joined by +", strings.Join(scopes, ", "))
	}
	if len(fields) == 3 {
		key.name = fields[2]
	}
	return key, nil
}

// setDigest sets the digest of an entry with the given number of fields.
func (k *apiKey) setDigest(text string, fields int) error {
	sum, err := hex.DecodeString(text)
	switch {
	case fields < 2:
		return fmt.Errorf("want %s, a space and the scopes, like push+read, and perhaps a name", digestPrefix+"…")
	case err != nil || len(sum) != len(k.digest):
		return fmt.Errorf("want 64 hex digits after %s", digestPrefix)
	}
	copy(k.digest[:], sum)
	return nil
}

// setKey sets the key of an entry, with all scopes.
func (k *apiKey) setKey(text string) error {
	if len(text) < MinKey {
		return fmt.Errorf("want a key of at least %[2]d bytes after %[1]s", plainPrefix, MinKey)
	}
	k.digest, k.scopes, k.plain = digestOf(text), []string{ScopeAdmin}, true
	return nil
}

// CheckScopes returns an error that names the first word that is not a scope.
func CheckScopes(words []string) error {
	for _, word := range words {
		if !slices.Contains(scopes, word) {
			return fmt.Errorf("%.20q is not a scope: %s", word, strings.Join(scopes, ", "))
		}
	}
	return nil
}

// NewKey makes a key, and its entry without scopes and name.
func NewKey() (key, entry string) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // Read never fails
	key = KeyPrefix + base64.RawURLEncoding.EncodeToString(random)
	return key, EntryOf(key)
}

// EntryOf returns a key's entry without scopes and name.
func EntryOf(key string) string {
	sum := digestOf(key)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// Open reports whether no keys are configured. Then every call is allowed.
func (k Keys) Open() bool { return len(k.list) == 0 }

// Len returns the number of keys.
func (k Keys) Len() int { return len(k.list) }

// Plain reports whether a key was configured in clear text. The broker logs a warning then.
func (k Keys) Plain() bool {
	return slices.ContainsFunc(k.list, func(key apiKey) bool { return key.plain })
}

// KeyID identifies an API key, also after a reload. It is zero if no keys are configured.
type KeyID [sha256.Size]byte

// IDs returns the ids of all keys.
func (k Keys) IDs() []KeyID {
	ids := make([]KeyID, len(k.list))
	for i, key := range k.list {
		ids[i] = KeyID(key.digest)
	}
	return ids
}

// Describe returns the name of a key, and the scopes of all calls that it may make. An unknown key
// has none. If no keys are configured, every caller has all scopes.
func (k Keys) Describe(id KeyID) (name string, allowed []string) {
	if k.Open() {
		return "", slices.Clone(scopes)
	}
	for _, key := range k.list {
		if KeyID(key.digest) != id {
			continue
		}
		if slices.Contains(key.scopes, ScopeAdmin) {
			return key.name, slices.Clone(scopes)
		}
		return key.name, slices.Clone(key.scopes)
	}
	return "", nil
}

// Check is Find without the key's id.
func (k Keys) Check(authorization, scope string) error {
	_, err := k.Find(authorization, scope)
	return err
}

// Find returns the id of a call's key. The error is nil if authorization, the value of that header,
// is "Bearer <key>" with a key that has the scope, or if no keys are configured. Every key has the
// empty scope. Otherwise the error is a *wire.Error with code unauthorized or forbidden.
func (k Keys) Find(authorization, scope string) (KeyID, error) {
	if k.Open() {
		return KeyID{}, nil
	}
	// RFC 9110 §11.1: the scheme is case-insensitive.
	scheme, key, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(key) == "" {
		return KeyID{}, wire.Errorf(wire.Unauthorized, "this call needs the header Authorization: Bearer <key>")
	}
	given := digestOf(strings.TrimSpace(key))
	var found *apiKey
	allowed := scope == ""
	for i := range k.list { // always compare all keys, so that the time reveals nothing
		if one := &k.list[i]; one.digest.equal(given) {
			found = one
			allowed = allowed || slices.Contains(one.scopes, scope) || slices.Contains(one.scopes, ScopeAdmin)
		}
	}
	switch {
	case found == nil:
		return KeyID{}, wire.Errorf(wire.Unauthorized, "unknown API key")
	case !allowed:
		return KeyID{}, wire.Errorf(wire.Forbidden, "the API key %s has the scope %s, and this call needs %s",
			found.name, strings.Join(found.scopes, "+"), scope)
	}
	return KeyID(given), nil
}
