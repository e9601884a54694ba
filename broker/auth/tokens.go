package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker/namespace"
	"switchboard/internal/wire"
)

var (
	// ErrExpired is returned for a token that was good until its exp passed: the client
	// may come back with a new one.
	ErrExpired = errors.New("the token has expired")
	// ErrUnready is returned when the key that a token names may exist, but could not be fetched yet:
	// the client may come back with the same token.
	ErrUnready = errors.New("the keys that tokens are signed with cannot be fetched; try again later")
	// ErrBadToken is returned for everything else: not a token, not signed by a key
	// of ours, not valid yet, not for us, or without a usable user.
	ErrBadToken = errors.New("bad token")
)

const (
	// MaxToken is the longest token looked at, in bytes.
	MaxToken = 8 << 10
	// MinSecret is the least length of an HS256 secret, in bytes (RFC 7518 §3.2).
	MinSecret = 32

	maxKeyID = 200
)

// NamedKey is a key that tokens name in their header (kid). It serves them alone, and only with its
// algorithm.
type NamedKey struct {
	ID   string
	Alg  string // HS256, RS256, RS384, RS512, PS256, ES256, ES384 or EdDSA
	Text []byte // the secret, or the public key or certificate in PEM
}

// Options configures Tokens. Each list may hold several keys, so that a new one can
// be rolled out before the old one goes.
type Options struct {
	// HS256 are shared secrets without a name, of MinSecret bytes or more, tried in turn. Zero
	// means none.
	HS256 [][]byte
	// RS256 are RSA public keys of 2048 bits at least, in PEM (a public key or a
	// certificate; one entry may hold several blocks), without a name. Zero means none.
	RS256 [][]byte
	// EdDSA are Ed25519 public keys in PEM. Zero as above.
	EdDSA [][]byte
	// Named are the keys with a name. Zero means none.
	Named []NamedKey
	// Remote is a key set that is fetched. Nil means none.
	Remote *Remote
	// Audiences are who we are: one of them must be in aud. Zero means that aud is not looked at.
	Audiences []string
	// Issuers are whose tokens we take: one of them must be iss. Zero as above.
	Issuers []string
	// Leeway is how far the clock of the issuer may be off. Zero means not at all.
	Leeway time.Duration
	// Now is the clock. Zero means time.Now.
	Now func() time.Time
}

// Claims is what a good token says.
type Claims struct {
	User string // sub
	// Client is the part of the client's id that the token fixes; "" when it leaves that open.
	Client string
	// Expires is when Verify begins to refuse the token, which is exp and the leeway;
	// zero when the token has no end.
	Expires time.Time
	// Info is the JSON object that goes with the user's presence; nil for none.
	Info json.RawMessage
	// Grants are the channels that the token opens.
	Grants namespace.Grants
}

// Tokens verifies JSON Web Tokens (RFC 7519).
type Tokens struct {
	ring   ring
	remote *Remote
	parser *jwt.Parser
	opts   Options // without the keys
}

// NewTokens reads the keys. Without any, Verify refuses every token.
func NewTokens(opts Options) (*Tokens, error) {
	r, err := newRing(opts)
	if err != nil {
		return nil, err
	}
	methods := r.methods()
	if opts.Remote != nil {
		for _, alg := range asymmetric {
			methods[alg] = true
		}
	}
	t := &Tokens{ring: r, remote: opts.Remote, opts: Options{
		Audiences: opts.Audiences, Issuers: opts.Issuers, Leeway: max(opts.Leeway, 0),
	}}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(slices.AppendSeq([]string{}, maps.Keys(methods))), // not nil: without a list the parser takes every method
		jwt.WithIssuedAt(), jwt.WithLeeway(t.opts.Leeway), jwt.WithStrictDecoding(),
	}
	if opts.Now != nil {
		options = append(options, jwt.WithTimeFunc(opts.Now))
	}
	t.parser = jwt.NewParser(options...)
	return t, nil
}

// Open reports whether no keys are configured: tokens cannot tell who a client is.
func (t *Tokens) Open() bool {
	return t == nil || len(t.ring.named)+len(t.ring.unnamed) == 0 && t.remote == nil
}

// Remote is the key set that is fetched, or nil.
func (t *Tokens) Remote() *Remote {
	if t == nil {
		return nil
	}
	return t.remote
}

// Unready says why no token can be verified now, or is empty.
func (t *Tokens) Unready() string {
	if t == nil || t.remote == nil || len(t.ring.named)+len(t.ring.unnamed) > 0 {
		return ""
	}
	return t.remote.unready()
}

// Adopt takes over the fetched keys of former, which t follows in its place. It is an error when the
// two do not fetch the same.
func (t *Tokens) Adopt(former *Tokens) error {
	if !t.remote.same(former.remote) {
		return errors.New("where keys are fetched, and when, cannot change while the broker runs")
	}
	t.remote = former.remote
	return nil
}

// Verify checks the signature and then the claims of token. sub is the user and must
// be there; exp, nbf and iat are honoured where present. Its errors are ErrExpired, ErrUnready
// and ErrBadToken.
func (t *Tokens) Verify(token string) (Claims, error) {
	if len(token) > MaxToken {
		return Claims{}, fmt.Errorf("%w: longer than %d bytes", ErrBadToken, MaxToken)
	}
	var c claims
	missed := false // a fetched key, and others were tried in its place
	if _, err := t.parser.ParseWithClaims(token, &c, func(token *jwt.Token) (any, error) { return t.key(token, &missed) }); err != nil {
		switch {
		case errors.Is(err, ErrUnready) || missed && errors.Is(err, jwt.ErrTokenSignatureInvalid):
			return Claims{}, ErrUnready
		case errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenNotValidYet):
			return Claims{}, ErrExpired
		}
		return Claims{}, fmt.Errorf("%w: %w", ErrBadToken, err)
	}
	if err := t.check(&c); err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrBadToken, err)
	}
	verified := Claims{User: c.Subject, Client: c.client, Info: c.info, Grants: c.grants}
	if c.ExpiresAt != nil {
		verified.Expires = c.ExpiresAt.Add(t.opts.Leeway)
	}
	return verified, nil
}

// check looks at what the parser does not know of.
func (t *Tokens) check(c *claims) error {
	if err := wire.CheckName("user", c.Subject); err != nil {
		return fmt.Errorf("sub: %w", err)
	}
	if strings.ContainsRune(c.Subject, '\uFFFD') { // what a broken escape is read as: two users would be one
		return errors.New("sub: it is not valid Unicode")
	}
	if len(t.opts.Issuers) > 0 && !slices.Contains(t.opts.Issuers, c.Issuer) {
		return errors.New("iss: it is not from an issuer that is trusted here")
	}
	if len(t.opts.Audiences) > 0 && !slices.ContainsFunc(c.Audience, func(aud string) bool { return slices.Contains(t.opts.Audiences, aud) }) {
		return errors.New("aud: it is meant for somebody else")
	}
	return nil
}

// key is the key that the token's header names; the parser has refused every alg for which there is none.
func (t *Tokens) key(token *jwt.Token, missed *bool) (any, error) {
	if err := checkHeader(token); err != nil {
		return nil, err
	}
	alg := token.Method.Alg()
	id, _ := token.Header["kid"].(string)
	if key, ok := t.ring.named[keyID{id, alg}]; ok {
		return key, nil
	}
	if t.ring.known[id] {
		return nil, errors.New("the key that kid names serves another alg")
	}
	set := t.ring.unnamed[alg]
	if t.remote != nil && alg != hs256 {
		keys, err := t.remote.find(id, alg)
		if err != nil && len(set.Keys) == 0 {
			return nil, err
		}
		*missed = err != nil
		if len(keys) > 0 && id != "" {
			return keys[0], nil
		}
		set.Keys = slices.Concat(set.Keys, keys)
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("kid names no key that is known here")
	}
	return set, nil
}

// checkHeader refuses what the parser would pass over.
func checkHeader(token *jwt.Token) error {
	if _, critical := token.Header["crit"]; critical {
		return errors.New("crit names an extension that is not known here") // RFC 7515 §4.1.11
	}
	if id, there := token.Header["kid"]; there {
		if text, ok := id.(string); !ok || len(text) > maxKeyID {
			return fmt.Errorf("kid is no text of at most %d bytes", maxKeyID)
		}
	}
	encoded, _, _ := strings.Cut(token.Raw, ".")
	text, err := jwt.NewParser().DecodeSegment(encoded)
	if err == nil {
		_, err = object(text)
	}
	return err
}
