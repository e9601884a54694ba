package account

import (
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker/auth"
	"switchboard/internal/wire"
)

// newVerifier returns the verifier of the tokens that issue signs.
func newVerifier(o Options) (*auth.Tokens, error) {
	verify := auth.Options{HS256: [][]byte{o.SigningKey}}
	if o.Audience != "" {
		verify.Audiences = []string{o.Audience}
	}
	if o.Issuer != "" {
		verify.Issuers = []string{o.Issuer}
	}
	return auth.NewTokens(verify)
}

// checkTokens checks that the broker accepts the tokens of accounts.
func (a *Accounts) checkTokens() error {
	token, err := a.issue(Account{ID: newID()}, "")
	if err == nil {
		err = a.host.CheckToken(token)
	}
	if err != nil {
		return fmt.Errorf("accounts: the broker refuses tokens that are signed with signing_key: %w", err)
	}
	return nil
}

// claims are the claims of a token for the broker.
type claims struct {
	jwt.RegisteredClaims
	Client string         `json:"client,omitempty"`
	Info   map[string]any `json:"info,omitempty"`
}

// issue signs a token for the broker.
func (a *Accounts) issue(of Account, client string) (string, error) {
	t := time.Now()
	c := claims{Client: client, RegisteredClaims: jwt.RegisteredClaims{
		Subject: of.ID, Issuer: a.opts.Issuer, IssuedAt: jwt.NewNumericDate(t), ExpiresAt: jwt.NewNumericDate(t.Add(a.opts.TokenLife)),
	}}
	if a.opts.Audience != "" {
		c.Audience = jwt.ClaimStrings{a.opts.Audience}
	}
	if of.Nickname != "" {
		c.Info = map[string]any{"nickname": of.Nickname}
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(a.opts.SigningKey)
}

// session returns the answer with a new token for the broker.
func (a *Accounts) session(of Account, client, renewal string) (Session, error) {
	token, err := a.issue(of, client)
	return Session{
		Account: of, Token: token, ExpiresIn: int(a.opts.TokenLife.Seconds()),
		Renewal: renewal, RenewalExpiresIn: int(a.opts.RenewalLife.Seconds()),
	}, err
}

// bearer returns the account whose token is in the header Authorization.
func (a *Accounts) bearer(authorization string) (id string, err error) {
	token, found := strings.CutPrefix(authorization, "Bearer ")
	if !found {
		return "", wire.Errorf(wire.Unauthorized, "the call needs a token: Authorization: Bearer <token>")
	}
	c, err := a.tokens.Verify(token)
	if err != nil {
		return "", wire.Errorf(wire.Unauthorized, "token: %s", err.Error())
	}
	return c.User, nil
}
