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

// digest stands for a secret. Digests have one length, so comparing two of them in
// constant time tells nothing about the length of the secret either.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

func (d digest) equal(other digest) bool {
	return subtle.ConstantTimeCompare(d[:], other[:]) == 1
}

// The scopes of API keys. ScopeAdmin includes the others.
const (
	ScopePush  = "push"  // tell clients something
	ScopeRead  = "read"  // ask who is there, and what was said
	ScopeAdmin = "admin" // everything
)

var scopes = []string{ScopePush, ScopeRead, ScopeAdmin}

// The forms of an entry: a key's digest, or the key itself.
const (
	hashedForm = "sha256:"
	plainForm  = "plain:"
)

// MinKey is the least length of an API key, in bytes.
const MinKey = 16

// KeyPrefix begins every key that NewKey makes, so that a key which strayed into a repository or a log
// is recognised, also by programs that look for such.
const KeyPrefix = "swb_"

// Keys are the API keys of the HTTP API. The zero value has none and lets everybody in.
type Keys struct {
	list []apiKey
}

type apiKey struct {
	name   string // for people
	digest digest
	scopes []string
	plain  bool // it was configured as it is
}

// NewKeys takes the entries as configured; several of them make rotation possible. An entry is the
// digest of a key or the key itself, its scopes and, if wanted, a name:
//
//	sha256:<64 hex digits> push+read billing
//	plain:<key of 16 bytes or more> push+read billing
//
// A plain entry without scopes has all of them. Anything else is an error, so that a comment or
// half of a line never becomes a key.
//
// The digest is SHA-256 and not a slow one like bcrypt: that is made for passwords, which can be guessed. A
// key from NewKey has 256 random bits, so no digest of it is ever inverted by trying, and a slow one would take
// milliseconds of every call, for anybody who sends any key.
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

// CheckEntry says what is wrong with an entry, without repeating it.
func CheckEntry(entry string) error {
	_, err := parseKey(entry)
	return err
}

// parseKey reads an entry. Its errors repeat nothing that may be a key or a digest.
func parseKey(entry string) (key apiKey, err error) {
	if entry == "" || strings.TrimSpace(entry) != entry {
		return apiKey{}, errors.New("it is empty or has white space around it")
	}
	fields := strings.Fields(entry)
	form, text, _ := strings.Cut(fields[0], ":")
	switch form += ":"; form {
	case hashedForm:
		err = key.hashed(text, len(fields))
	case plainForm:
		err = key.unhashed(text)
	default:
		for _, right := range []string{hashedForm, plainForm} {
			if strings.EqualFold(form, right) {
				return apiKey{}, fmt.Errorf("%s is written in lower case", right)
			}
		}
		return apiKey{}, errors.New("want the entry that `broker key` prints (sha256:…), or plain:<key> and the scopes")
	}
	switch {
	case err != nil:
		return apiKey{}, err
	case len(fields) > 3:
		return apiKey{}, errors.New("behind the scopes stands at most a name, of one word")
	case len(fields) > 1:
		key.scopes = strings.Split(fields[1], "+")
	}
	if CheckScopes(key.scopes) != nil { // whose error repeats the word, which may be half of a key
		return apiKey{}, fmt.Errorf("the second word is not made of scopes (%s), joined by +", strings.Join(scopes, ", "))
	}
	if len(fields) == 3 {
		key.name = fields[2]
	}
	return key, nil
}

// hashed takes the digest of an entry that has that many fields.
func (k *apiKey) hashed(text string, fields int) error {
	sum, err := hex.DecodeString(text)
	switch {
	case fields < 2:
		return fmt.Errorf("want %s, a space and the scopes, like push+read, and perhaps a name", hashedForm+"…")
	case err != nil || len(sum) != len(k.digest):
		return fmt.Errorf("behind %s stand 64 hex digits", hashedForm)
	}
	copy(k.digest[:], sum)
	return nil
}

// unhashed takes the key of an entry.
func (k *apiKey) unhashed(text string) error {
	if len(text) < MinKey {
		return fmt.Errorf("behind %s stands a key of %d bytes at least", plainForm, MinKey)
	}
	k.digest, k.scopes, k.plain = digestOf(text), []string{ScopeAdmin}, true
	return nil
}

// CheckScopes names the first word that is no scope.
func CheckScopes(words []string) error {
	for _, word := range words {
		if !slices.Contains(scopes, word) {
			return fmt.Errorf("%.20q is no scope: %s", word, strings.Join(scopes, ", "))
		}
	}
	return nil
}

// NewKey makes a key, and the beginning of its entry.
func NewKey() (key, entry string) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it does not fail
	key = KeyPrefix + base64.RawURLEncoding.EncodeToString(random)
	return key, EntryOf(key)
}

// EntryOf is the beginning of a key's entry.
func EntryOf(key string) string {
	sum := digestOf(key)
	return hashedForm + hex.EncodeToString(sum[:])
}

// Open reports whether no keys are configured, so that everybody may call.
func (k Keys) Open() bool { return len(k.list) == 0 }

// Len is how many keys there are.
func (k Keys) Len() int { return len(k.list) }

// Plain reports whether a key was configured as it is. Worth a warning in the log.
func (k Keys) Plain() bool {
	return slices.ContainsFunc(k.list, func(key apiKey) bool { return key.plain })
}

// KeyID tells API keys apart, over a reload as well. It is zero where there are none.
type KeyID [sha256.Size]byte

// IDs are those of all keys.
func (k Keys) IDs() []KeyID {
	ids := make([]KeyID, len(k.list))
	for i, key := range k.list {
		ids[i] = KeyID(key.digest)
	}
	return ids
}

// Check is Find, for who does not ask which key it is.
func (k Keys) Check(authorization, scope string) error {
	_, err := k.Find(authorization, scope)
	return err
}

// Find says which key a call is made with. The error is nil when authorization, the value of that header, is
// "Bearer <key>" with one of the keys and that has the scope, or when the API is open. An empty scope is had by every
// key. Otherwise it is a *wire.Error with code unauthorized or forbidden.
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
	may := scope == ""
	for i := range k.list { // all are compared, whichever fits
		if one := &k.list[i]; one.digest.equal(given) {
			found = one
			may = may || slices.Contains(one.scopes, scope) || slices.Contains(one.scopes, ScopeAdmin)
		}
	}
	switch {
	case found == nil:
		return KeyID{}, wire.Errorf(wire.Unauthorized, "unknown API key")
	case !may:
		return KeyID{}, wire.Errorf(wire.Forbidden, "the API key %s has the scope %s, and this call needs %s",
			found.name, strings.Join(found.scopes, "+"), scope)
	}
	return KeyID(given), nil
}
