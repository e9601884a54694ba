package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker/auth"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// Session is the answer to a login, a registration and a renewal.
type Session struct {
	Account Account `json:"account"`
	// Token is the token for the broker, a JSON Web Token. Its user is the id of the account.
	Token     string `json:"token"`
	ExpiresIn int    `json:"expires_in"` // seconds
	// Renewal is the renewal token. It is valid once, for one renewal.
	Renewal          string `json:"renewal"`
	RenewalExpiresIn int    `json:"renewal_expires_in"` // seconds
	// Message is the last message of the server, of a login by a challenge.
	Message string `json:"message,omitempty"`
}

// secretSize is the length of a family and of a secret: that of rand.Text.
const secretSize = 26

// renewalToken is a parsed renewal token: <account>.<slot>.<family>.<secret>.
type renewalToken struct {
	account string
	slot    int
	family  string
	secret  string
}

func (t renewalToken) String() string {
	return strings.Join([]string{t.account, strconv.Itoa(t.slot), t.family, t.secret}, ".")
}

// digest is what the store keeps of the secret. The secret is random, so no salt is needed.
func (t renewalToken) digest() []byte {
	sum := sha256.Sum256([]byte(t.secret))
	return sum[:]
}

func parseRenewal(text string) (t renewalToken, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 4 || len(parts[2]) != secretSize || len(parts[3]) != secretSize {
		return t, ended()
	}
	t = renewalToken{account: parts[0], family: parts[2], secret: parts[3]}
	// The comparison refuses other texts of a slot, such as +0.
	if t.slot, err = strconv.Atoi(parts[1]); err != nil || t.slot < 0 || t.slot >= MaxLogins || checkID(t.account) != nil || t.String() != text {
		return t, ended()
	}
	return t, nil
}

func ended() error {
	return wire.Errorf(wire.Unauthorized, "the renewal token is unknown, was used before, or its login has ended; log in again")
}

// grant adds a login that can be renewed to an edit. If the account has Options.Logins, the oldest
// one ends.
func (a *Accounts) grant(e *edit, client string) (grant, renewalToken) {
	used, oldest, free := 0, -1, -1
	for slot := range e.grants {
		switch g := &e.grants[slot]; {
		case g.ID == 0 && free < 0:
			free = slot
		case g.ID != 0:
			used++
			if oldest < 0 || g.Value.Since < e.grants[oldest].Value.Since {
				oldest = slot
			}
		}
	}
	slot := free
	if used >= a.opts.Logins {
		slot = oldest
	}
	t := renewalToken{account: e.id, slot: slot, family: rand.Text(), secret: rand.Text()}
	g := grant{Family: t.family, Digest: t.digest(), Client: client, Since: now()}
	e.set(tokenField(slot), g, a.opts.RenewalLife)
	return g, t
}

// Renew exchanges a renewal token for new tokens. A token that was exchanged before may have been
// stolen: it ends its login.
func (a *Accounts) Renew(ctx context.Context, text string, from Caller) (_ Session, err error) {
	defer a.results.Count("renew", &err)
	if err := a.rates.call(from); err != nil {
		return Session{}, err
	}
	t, err := parseRenewal(text)
	if err != nil {
		return Session{}, err
	}
	return kit.Retry(ctx, "the login", func() (Session, error) {
		s, err := a.read(ctx, t.account)
		if err != nil {
			return Session{}, err
		}
		g := s.grants[t.slot]
		if g.ID == 0 || g.Value.Family != t.family {
			return Session{}, ended()
		}
		if subtle.ConstantTimeCompare(g.Value.Digest, t.digest()) != 1 {
			return Session{}, a.endReused(ctx, t, from)
		}
		next := t
		next.secret, g.Value.Digest = rand.Text(), nil
		g.Value.Digest = next.digest()
		u := &state.Update{
			Ops: []state.Op{setOp(tokenField(t.slot), g.Value, a.opts.RenewalLife)}, If: []state.Condition{kit.Same(tokenField(t.slot), g.ID)},
		}
		u.Keep = a.life(&s.record.Value)
		// The grant ends with every change after which the account may not log in, in the same
		// update.
		if _, err = a.store.Change(ctx, accountPrefix+t.account, u, a.opts.Durable); err != nil {
			return Session{}, kit.IfChanged(err)
		}
		return a.session(s.account(), g.Value, next)
	})
}

// endReused ends the login whose renewal token was used twice.
func (a *Accounts) endReused(ctx context.Context, t renewalToken, from Caller) error {
	_, err := a.edit(ctx, t.account, func(e *edit) error {
		if g := &e.grants[t.slot]; g.ID == 0 || g.Value.Family != t.family {
			return ended()
		}
		e.endLogin(t.slot)
		e.log(Event{Type: TokenReused, Address: from.text()})
		return nil
	})
	if err != nil {
		return err
	}
	return ended()
}

// endLogin ends one login, and the connections that its tokens may have opened.
func (e *edit) endLogin(slot int) {
	g := &e.grants[slot]
	e.expect(tokenField(slot), g.ID)
	e.remove(tokenField(slot))
	if g.Value.Client == "" {
		e.all = true
	} else {
		e.disconnect = append(e.disconnect, g.Value.Client)
	}
}

// Logout ends the login of a renewal token and closes its connections. With everywhere, it ends all
// logins of the account.
func (a *Accounts) Logout(ctx context.Context, text string, everywhere bool, from Caller) error {
	if err := a.rates.call(from); err != nil {
		return err
	}
	t, err := parseRenewal(text)
	if err != nil {
		return err
	}
	_, err = a.edit(ctx, t.account, func(e *edit) error {
		g := &e.grants[t.slot]
		if g.ID == 0 || g.Value.Family != t.family {
			return ended()
		}
		if subtle.ConstantTimeCompare(g.Value.Digest, t.digest()) != 1 {
			return errReused
		}
		if everywhere {
			e.endLogins()
		} else {
			e.endLogin(t.slot)
		}
		e.log(Event{Type: LoggedOut, Address: from.text()})
		return nil
	})
	switch {
	case err == errReused:
		return a.endReused(ctx, t, from)
	case kit.HasCode(err, wire.NotFound):
		return ended()
	}
	return err
}

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
