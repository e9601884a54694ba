package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"strconv"
	"strings"

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
		case g.id == 0 && free < 0:
			free = slot
		case g.id != 0:
			used++
			if oldest < 0 || g.value.Since < e.grants[oldest].value.Since {
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
func (a *Accounts) Renew(ctx context.Context, text string, from Caller) (Session, error) {
	s, err := a.renew(ctx, text, from)
	a.results.Count("renew", err)
	return s, err
}

func (a *Accounts) renew(ctx context.Context, text string, from Caller) (Session, error) {
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
		if g.id == 0 || g.value.Family != t.family {
			return Session{}, ended()
		}
		if subtle.ConstantTimeCompare(g.value.Digest, t.digest()) != 1 {
			return Session{}, a.endReused(ctx, t, from)
		}
		next := t
		next.secret, g.value.Digest = rand.Text(), nil
		g.value.Digest = next.digest()
		u := newUpdate()
		u.Ops, u.If = append(u.Ops, setOp(tokenField(t.slot), g.value, a.opts.RenewalLife)), append(u.If, expect(tokenField(t.slot), g.id))
		u.Keep = a.life(&s.record.value)
		// The grant ends with every change after which the account may not log in, in the same
		// update.
		if _, err = a.store.Change(ctx, accountPrefix+t.account, u, a.opts.Durable); err != nil {
			return Session{}, changed(err)
		}
		return a.session(s.account(), g.value, next)
	})
}

// endReused ends the login whose renewal token was used twice.
func (a *Accounts) endReused(ctx context.Context, t renewalToken, from Caller) error {
	_, err := a.edit(ctx, t.account, func(e *edit) error {
		if g := &e.grants[t.slot]; g.id == 0 || g.value.Family != t.family {
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
	e.expect(tokenField(slot), g.id)
	e.remove(tokenField(slot))
	if g.value.Client == "" {
		e.all = true
	} else {
		e.disconnect = append(e.disconnect, g.value.Client)
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
		if g.id == 0 || g.value.Family != t.family {
			return ended()
		}
		if subtle.ConstantTimeCompare(g.value.Digest, t.digest()) != 1 {
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
	case isNotFound(err):
		return ended()
	}
	return err
}
