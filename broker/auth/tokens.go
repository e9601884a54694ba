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
	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

var (
	// ErrExpired is returned for a token whose exp has passed and that is otherwise valid: the client
	// may retry with a new one.
	ErrExpired = errors.New("the token has expired")
	// ErrUnready is returned if the key of a token may exist but could not be fetched: the client may
	// retry with the same token.
	ErrUnready = errors.New("the keys that tokens are signed with cannot be fetched; try again later")
	// ErrBadToken is returned for every other invalid token: malformed, signed with an unknown key,
	// not valid yet, for another audience, or without a valid user.
	ErrBadToken = errors.New("bad token")
)

const (
	// MaxToken is the longest accepted token, in bytes.
	MaxToken = 8 << 10
	// MinSecret is the least length of an HS256 secret, in bytes (RFC 7518 §3.2).
	MinSecret = 32

	maxKid = 200
)

// NamedKey is a key that tokens name in their header (kid). It verifies only tokens that name it,
// and only with its algorithm.
type NamedKey struct {
	ID   string
	Alg  string // HS256, RS256, RS384, RS512, PS256, ES256, ES384 or EdDSA
	Text []byte // the secret, or the public key or certificate in PEM
}

// Options configures Tokens. Each list may hold several keys, so that a new one can be rolled out
// before the old one is removed.
type Options struct {
	// HS256 are shared secrets without a name, of MinSecret bytes or more, tried one after the other.
	// Zero means none.
	HS256 [][]byte
	// RS256 are RSA public keys of 2048 bits at least, without a name. Each entry holds public keys or
	// certificates in PEM. Zero means none.
	RS256 [][]byte
	// EdDSA are Ed25519 public keys in PEM, without a name. Zero means none.
	EdDSA [][]byte
	// Named are the keys with a name. Zero means none.
	Named []NamedKey
	// Remote is a key set that is fetched. Nil means none.
	Remote *Remote
	// Audiences are the broker's names: one of them must be in aud. Zero means that aud is not
	// checked.
	Audiences []string
	// Issuers are the trusted issuers: one of them must be iss. Zero means that iss is not checked.
	Issuers []string
	// Leeway is the accepted difference to the issuer's clock. Zero means none.
	Leeway time.Duration
	// Now is the clock. Zero means time.Now.
	Now func() time.Time
}

// Claims are the claims of a valid token.
type Claims struct {
	User string // sub
	// Client is the part of the client id that the token sets; "" if the client may choose it.
	Client string
	// Issued is iat, Unix ms; 0 if the token does not say it.
	Issued int64
	// Expires is when the token becomes invalid: exp plus the leeway. Zero means never.
	Expires time.Time
	// Info is the JSON object that other clients see with the user's presence; nil means none.
	Info json.RawMessage
	// Grants are the actions that the token allows on channels.
	Grants namespace.Grants
	// Subscribe are the channels to which each connection of the client is subscribed.
	Subscribe []string
}

// Tokens verifies JSON Web Tokens (RFC 7519).
type Tokens struct {
	keyring keyring
	remote  *Remote
	parser  *jwt.Parser
	opts    Options // without the keys
}

// NewTokens parses the keys. Without keys, Verify refuses every token.
func NewTokens(opts Options) (*Tokens, error) {
	r, err := newKeyring(opts)
	if err != nil {
		return nil, err
	}
	methods := r.methods()
	if opts.Remote != nil {
		for _, alg := range asymmetric {
			methods[alg] = true
		}
	}
	t := &Tokens{keyring: r, remote: opts.Remote, opts: Options{
		Audiences: opts.Audiences, Issuers: opts.Issuers, Leeway: max(opts.Leeway, 0),
	}}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(slices.AppendSeq([]string{}, maps.Keys(methods))), // not nil: without a list the parser accepts every method
		jwt.WithIssuedAt(), jwt.WithLeeway(t.opts.Leeway), jwt.WithStrictDecoding(),
	}
	if opts.Now != nil {
		options = append(options, jwt.WithTimeFunc(opts.Now))
	}
	t.parser = jwt.NewParser(options...)
	return t, nil
}

// Open reports whether no keys are configured, so that tokens cannot identify users.
func (t *Tokens) Open() bool {
	return t == nil || len(t.keyring.named)+len(t.keyring.unnamed) == 0 && t.remote == nil
}

// Remote returns the key set that is fetched, or nil.
func (t *Tokens) Remote() *Remote {
	if t == nil {
		return nil
	}
	return t.remote
}

// Unready returns why no token can be verified now, or "".
func (t *Tokens) Unready() string {
	if t == nil || t.remote == nil || len(t.keyring.named)+len(t.keyring.unnamed) > 0 {
		return ""
	}
	return t.remote.unready()
}

// Adopt makes t use the fetched keys of former, which t replaces after a reload. It returns an
// error if the URL, the interval or a period of the fetched keys differ.
func (t *Tokens) Adopt(former *Tokens) error {
	if !t.remote.sameSource(former.remote) {
		return errors.New("the URL and the times of fetched keys cannot change while the broker runs")
	}
	t.remote = former.remote
	return nil
}

// Verify checks the signature and then the claims of token. sub is the user and is required. exp,
// nbf and iat are checked if present. The errors are ErrExpired, ErrUnready and ErrBadToken.
func (t *Tokens) Verify(token string) (Claims, error) {
	switch {
	case len(token) > MaxToken:
		return Claims{}, fmt.Errorf("%w: longer than %d bytes", ErrBadToken, MaxToken)
	case strings.ContainsAny(token, "\r\n"): // encoding/base64 skips them, so one token would have many texts
		return Claims{}, fmt.Errorf("%w: it has a line break", ErrBadToken)
	}
	var c claims
	missed := false // a key could not be fetched, and configured keys were tried instead
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
	verified := Claims{User: c.Subject, Client: c.client, Issued: c.issued, Info: c.info, Grants: c.grants, Subscribe: c.subscribe}
	if c.ExpiresAt != nil {
		verified.Expires = c.ExpiresAt.Add(t.opts.Leeway)
	}
	return verified, nil
}

// check checks the claims that the parser does not check.
func (t *Tokens) check(c *claims) error {
	if err := wire.CheckName("user", c.Subject); err != nil {
		return fmt.Errorf("sub: %w", err)
	}
	if strings.ContainsRune(c.Subject, '\uFFFD') { // the parser replaces broken escapes by it, so two users could look the same
		return errors.New("sub: it is not valid Unicode")
	}
	if len(t.opts.Issuers) > 0 && !slices.Contains(t.opts.Issuers, c.Issuer) {
		return errors.New("iss: the issuer is not trusted")
	}
	if len(t.opts.Audiences) > 0 && !slices.ContainsFunc(c.Audience, func(aud string) bool { return slices.Contains(t.opts.Audiences, aud) }) {
		return errors.New("aud: the token is for another audience")
	}
	return nil
}

// key returns the key or keys for the token's header. The parser has already refused an alg
// without keys.
func (t *Tokens) key(token *jwt.Token, missed *bool) (any, error) {
	if err := checkHeader(token); err != nil {
		return nil, err
	}
	alg := token.Method.Alg()
	id, _ := token.Header["kid"].(string)
	if key, ok := t.keyring.named[kidAlg{id, alg}]; ok {
		return key, nil
	}
	if t.keyring.namedIDs[id] {
		return nil, errors.New("the key that kid names has another alg")
	}
	set := t.keyring.unnamed[alg]
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
	switch {
	case len(set.Keys) > 0:
		return set, nil
	case id == "":
		return nil, fmt.Errorf("it has no kid, and every %s key of this broker has a name: sign it with the kid of one", alg)
	}
	return nil, errors.New("kid names an unknown key")
}

// checkHeader refuses headers that the parser would accept.
func checkHeader(token *jwt.Token) error {
	if _, critical := token.Header["crit"]; critical {
		return errors.New("crit names an unknown extension") // RFC 7515 §4.1.11
	}
	if id, present := token.Header["kid"]; present {
		if text, ok := id.(string); !ok || len(text) > maxKid {
			return fmt.Errorf("kid is not a string of at most %d bytes", maxKid)
		}
	}
	encoded, _, _ := strings.Cut(token.Raw, ".")
	text, err := jwt.NewParser().DecodeSegment(encoded)
	if err == nil {
		_, err = payload.UniqueFields(text)
	}
	return err
}
