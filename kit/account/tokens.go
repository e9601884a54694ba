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

// checkTokens checks that the broker accepts the tokens of accounts. The token lives for a minute
// at least, so that a slow start does not count as a refusal.
func (a *Accounts) checkTokens() error {
	token, err := a.issueFor(Account{ID: newID()}, grant{}, max(a.opts.TokenLife, time.Minute))
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
	Login  string         `json:"sid"` // names the login (OpenID Connect Front-Channel Logout 1.0, §3)
}

// issue signs a token for the broker, of a login.
func (a *Accounts) issue(of Account, login grant) (string, error) {
	return a.issueFor(of, login, a.opts.TokenLife)
}

// issueFor is issue for a token that lives for life.
func (a *Accounts) issueFor(of Account, login grant, life time.Duration) (string, error) {
	t := time.Now()
	c := claims{Client: login.Client, Login: login.id(), RegisteredClaims: jwt.RegisteredClaims{
		Subject: of.ID, Issuer: a.opts.Issuer, IssuedAt: jwt.NewNumericDate(t), ExpiresAt: jwt.NewNumericDate(t.Add(life)),
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
func (a *Accounts) session(of Account, login grant, renewal renewalToken) (Session, error) {
	token, err := a.issue(of, login)
	return Session{
		Account: of, Token: token, ExpiresIn: int(a.opts.TokenLife.Seconds()),
		Renewal: renewal.String(), RenewalExpiresIn: int(a.opts.RenewalLife.Seconds()),
	}, err
}

// bearer returns the account and the login whose token is in the header Authorization. The login
// may have ended.
func (a *Accounts) bearer(authorization string) (id, login string, err error) {
	token, found := strings.CutPrefix(authorization, "Bearer ")
	if !found {
		return "", "", wire.Errorf(wire.Unauthorized, "the call needs a token: Authorization: Bearer <token>")
	}
	c, err := a.tokens.Verify(token)
	if err != nil {
		return "", "", wire.Errorf(wire.Unauthorized, "token: %s", err.Error())
	}
	var more claims
	if _, _, err = jwt.NewParser().ParseUnverified(token, &more); err != nil || more.Login == "" {
		return "", "", wire.Errorf(wire.Unauthorized, "token: it does not name its login; renew it")
	}
	return c.User, more.Login, nil
}
