package account

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/netip"
	"time"

	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

// Caller is where a call without an API key comes from, and what it has shown.
type Caller struct {
	Address netip.Addr // the zero Addr if it is not known
	// Login is the sid claim of the token that came with the call. The call is refused if that login
	// has ended. Zero means that the caller is the program itself, which may do everything.
	Login string
	// Renewal is the renewal token of a guest. A guest has no password, and a token for the broker is
	// not enough to take an account over, or to delete it. It counts only with Login.
	Renewal string
}

// text returns the address as records have it.
func (c Caller) text() string {
	if !c.Address.IsValid() {
		return ""
	}
	return c.Address.String()
}

// network returns the network of the address, which has one share of the rates, "" for none.
func (c Caller) network() string {
	if !c.Address.IsValid() {
		return ""
	}
	return limit.Network(c.Address).String()
}

// id returns the sid claim of the tokens of a login. It does not show the family: with that, the
// holder of a token could present a wrong renewal token, which ends the login.
func (g *grant) id() string {
	sum := sha256.Sum256([]byte("login " + g.Family))
	return hex.EncodeToString(sum[:16])
}

// checkLogin returns an error if the login of the caller's token has ended.
func (s *snapshot) checkLogin(from Caller) error {
	if from.Login == "" {
		return nil
	}
	for slot := range s.grants {
		if g := &s.grants[slot]; g.ID != 0 && g.Value.id() == from.Login {
			return nil
		}
	}
	return wire.Errorf(wire.Unauthorized, "the login of the token has ended; log in again")
}

// checkGuest returns an error if the account is a guest's and the caller has not shown its renewal
// token. The error is errReused if the token was used before. renewal is the zero value for an
// account with a password, and for a trusted caller.
func (s *snapshot) checkGuest(from Caller) (renewal renewalToken, err error) {
	if from.Login == "" || s.scram.ID != 0 {
		return renewal, nil
	}
	if from.Renewal == "" {
		return renewal, wire.Errorf(wire.Unauthorized, "renewal: it is missing; a guest has no password, and shows its renewal token")
	}
	t, err := parseRenewal(from.Renewal)
	if err != nil {
		return renewal, err
	}
	switch g := &s.grants[t.slot]; {
	case t.account != s.id || g.ID == 0 || g.Value.Family != t.family:
		return renewal, ended()
	case subtle.ConstantTimeCompare(g.Value.Digest, t.digest()) != 1:
		return t, errReused
	}
	return t, nil
}

// expectGuest makes an edit that needs what checkGuest checks.
func (e *edit) expectGuest(from Caller) error {
	t, err := e.checkGuest(from)
	if err == nil && t.account != "" {
		e.expect(tokenField(t.slot), e.grants[t.slot].ID) // no renewal came in between
	}
	return err
}

// rates limit what callers without an API key may do on this broker.
type rates struct {
	name, address, register, calls, profile *limit.Keyed
}

func newRates(o Options) rates {
	per := func(n int, d time.Duration) *limit.Keyed {
		return limit.NewKeyed(limit.New(float64(n)/d.Seconds(), n))
	}
	return rates{
		name: per(o.NameRate, time.Minute), address: per(o.AddressRate, time.Minute), register: per(o.RegisterRate, time.Hour),
		calls: per(o.CallRate, time.Minute), profile: per(o.NameRate, time.Minute),
	}
}

// attempt counts an attempt to log in to a name, or to show the password of one.
func (r *rates) attempt(c Caller, digest string) error {
	if err := r.from(c); err != nil {
		return err
	}
	return refuse(r.name.Take(digest), "too many attempts for this name")
}

// from counts an attempt of an address.
func (r *rates) from(c Caller) error {
	return r.take(r.address, c, "too many attempts from this address")
}

// call counts a call with a token or a renewal token. It costs no computation of a password, so
// more of them are permitted.
func (r *rates) call(c Caller) error {
	return r.take(r.calls, c, "too many calls from this address")
}

// edited counts a change of an account that needs no password.
func (r *rates) edited(account string) error {
	return refuse(r.profile.Take(account), "too many changes of this account")
}

// registration counts a registration of an address.
func (r *rates) registration(c Caller) error {
	return r.take(r.register, c, "too many registrations from this address")
}

// take takes one call from the share of the caller's network. A caller without an address is
// trusted.
func (r *rates) take(k *limit.Keyed, c Caller, text string) error {
	if !c.Address.IsValid() {
		return nil
	}
	return refuse(k.Take(c.network()), text)
}

func refuse(wait time.Duration, text string) error {
	if wait == 0 {
		return nil
	}
	e := wire.Errorf(wire.RateLimited, "%s", text)
	e.After = wait
	return e
}
