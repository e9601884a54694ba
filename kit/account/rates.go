package account

import (
	"time"

	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

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
