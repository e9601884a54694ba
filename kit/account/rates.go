package account

import (
	"time"

	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

// rates limit what callers without an API key may do on this broker.
type rates struct {
	name, address, register *limit.Keyed
}

func newRates(o Options) rates {
	per := func(n int, d time.Duration) *limit.Keyed {
		return limit.NewKeyed(limit.New(float64(n)/d.Seconds(), n))
	}
	return rates{
		name: per(o.NameRate, time.Minute), address: per(o.AddressRate, time.Minute), register: per(o.RegisterRate, time.Hour),
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
	if !c.Address.IsValid() {
		return nil
	}
	return refuse(r.address.Take(limit.Network(c.Address).String()), "too many attempts from this address")
}

// registration counts a registration of an address.
func (r *rates) registration(c Caller) error {
	if !c.Address.IsValid() {
		return nil
	}
	return refuse(r.register.Take(limit.Network(c.Address).String()), "too many registrations from this address")
}

func refuse(wait time.Duration, text string) error {
	if wait == 0 {
		return nil
	}
	e := wire.Errorf(wire.RateLimited, "%s", text)
	e.After = wait
	return e
}
