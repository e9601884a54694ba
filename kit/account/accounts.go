package account

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/kit"
	"switchboard/kit/index"
)

// Accounts is the accounts of a broker. All brokers with the same store and options have the same
// accounts.
type Accounts struct {
	opts      Options // with all values set
	store     Store
	index     index.Index
	host      *broker.Host
	log       zerolog.Logger
	passwords passwords
	tokens    *auth.Tokens // verifies the tokens of issue
	rates     rates
	results   kit.Results

	challengeKey []byte
}

// New returns the accounts of a broker.
func New(host *broker.Host, o Options) (*Accounts, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	a := &Accounts{
		opts: o, store: o.Store, index: o.Index, host: host, log: host.Logger(),
		passwords: newPasswords(o), rates: newRates(o), results: kit.NewResults("switchboard_logins_total", "Registrations, logins and renewals"),
		challengeKey: subkey(o.SigningKey, "challenges"),
	}
	if a.store == nil {
		a.store = HostStore(host)
	}
	if a.tokens, err = newVerifier(o); err != nil {
		return nil, err
	}
	return a, a.checkTokens()
}

// Get returns an account, or a not_found error.
func (a *Accounts) Get(ctx context.Context, id string) (Account, error) {
	if err := checkID(id); err != nil {
		return Account{}, err
	}
	s, err := a.read(ctx, id)
	if err != nil {
		return Account{}, err
	}
	if !s.exists() {
		return Account{}, notFound(id)
	}
	return s.account(), nil
}

// GetSelf is Get on behalf of the user.
func (a *Accounts) GetSelf(ctx context.Context, id string, from Caller) (Account, error) {
	s, err := a.read(ctx, id)
	if err == nil {
		err = s.checkLogin(from)
	}
	if err != nil {
		return Account{}, err
	}
	if !s.exists() {
		return Account{}, notFound(id)
	}
	return s.account(), nil
}

// Find returns the account with a name, or a not_found error.
func (a *Accounts) Find(ctx context.Context, text string) (Account, error) {
	n, err := parseName(text)
	if err != nil {
		return Account{}, err
	}
	s, err := a.owner(ctx, n)
	if err != nil {
		return Account{}, err
	}
	if !s.exists() {
		return Account{}, notFound(text)
	}
	return s.account(), nil
}

// now returns the current time in Unix ms, for display. No decision depends on it.
func now() int64 { return time.Now().UnixMilli() }
