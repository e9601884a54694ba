package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/internal/wire"
)

var (
	// ErrExpired is returned for a token that was good until its exp passed: the client
	// may come back with a new one.
	ErrExpired = errors.New("the token has expired")
	// ErrBadToken is returned for everything else: not a token, not signed by a key
	// of ours, not valid yet, or without a usable user.
	ErrBadToken = errors.New("bad token")
)

const (
	// MaxToken is the longest token looked at, in bytes.
	MaxToken = 8 << 10
	// MinSecret is how long an HS256 secret should be, in bytes (RFC 7518 §3.2).
	MinSecret = 32
)

// Options configures Tokens. Each list may hold several keys, so that a new one can
// be rolled out before the old one goes; they are tried in turn.
type Options struct {
	// HS256 are shared secrets. Zero means that no token of that kind is accepted.
	HS256 [][]byte
	// RS256 are RSA public keys of 2048 bits at least, in PEM (a public key or a
	// certificate; one entry may hold several blocks). Zero as above.
	RS256 [][]byte
	// EdDSA are Ed25519 public keys in PEM. Zero as above.
	EdDSA [][]byte
	// Leeway is how far the clock of the issuer may be off. Zero means not at all.
	Leeway time.Duration
	// Now is the clock. Zero means time.Now.
	Now func() time.Time
}

// Claims is what a good token says.
type Claims struct {
	User string // sub
	// Expires is when Verify begins to refuse the token, which is exp and the leeway;
	// zero when the token has no end.
	Expires time.Time
}

// Tokens verifies JSON Web Tokens (RFC 7519).
type Tokens struct {
	keys   map[string]jwt.VerificationKeySet // by alg
	parser *jwt.Parser
	leeway time.Duration
	weak   bool
}

// NewTokens reads the keys. Without any, Verify refuses every token.
func NewTokens(opts Options) (*Tokens, error) {
	t := &Tokens{keys: map[string]jwt.VerificationKeySet{}, leeway: max(opts.Leeway, 0)}
	if err := t.readKeys(opts); err != nil {
		return nil, err
	}
	methods := []string{} // not nil: without a list the parser takes every method it knows
	for alg := range t.keys {
		methods = append(methods, alg)
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(methods), jwt.WithIssuedAt(), jwt.WithLeeway(t.leeway), jwt.WithStrictDecoding(),
	}
	if opts.Now != nil {
		options = append(options, jwt.WithTimeFunc(opts.Now))
	}
	t.parser = jwt.NewParser(options...)
	return t, nil
}

// Open reports whether no keys are configured: tokens cannot tell who a client is.
func (t *Tokens) Open() bool { return len(t.keys) == 0 }

// Weak reports whether an HS256 secret is shorter than MinSecret, so that whoever has
// one token can hope to find it out by trying. Worth a warning in the log.
func (t *Tokens) Weak() bool { return t.weak }

// Verify checks the signature and then the claims of token. sub is the user and must
// be there; exp, nbf and iat are honoured where present. Its errors are ErrExpired
// and ErrBadToken.
func (t *Tokens) Verify(token string) (Claims, error) {
	if len(token) > MaxToken {
		return Claims{}, fmt.Errorf("%w: longer than %d bytes", ErrBadToken, MaxToken)
	}
	var claims jwt.RegisteredClaims
	if _, err := t.parser.ParseWithClaims(token, &claims, t.key); err != nil {
		if errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenNotValidYet) {
			return Claims{}, ErrExpired
		}
		return Claims{}, fmt.Errorf("%w: %w", ErrBadToken, err)
	}
	if err := wire.CheckName("user", claims.Subject); err != nil {
		return Claims{}, fmt.Errorf("%w: sub: %w", ErrBadToken, err)
	}
	c := Claims{User: claims.Subject}
	if claims.ExpiresAt != nil {
		c.Expires = claims.ExpiresAt.Add(t.leeway)
	}
	return c, nil
}

// key chooses by alg, so that a public key never serves as a shared secret. The
// parser has refused every alg without keys before it asks.
func (t *Tokens) key(token *jwt.Token) (any, error) {
	if _, critical := token.Header["crit"]; critical {
		return nil, errors.New("crit names an extension that is not known here") // RFC 7515 §4.1.11
	}
	return t.keys[token.Method.Alg()], nil
}
