package account

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/auth"
	"switchboard/broker/extension"
	"switchboard/kit"
	"switchboard/kit/index"
)

// Accounts is the accounts of a broker. All brokers with the same store and options have the same
// accounts.
type Accounts struct {
	opts      Options // with all values set
	store     Store
	index     index.Index
	host      *extension.Host
	log       zerolog.Logger
	passwords passwords
	tokens    *auth.Tokens // verifies the tokens of issue
	rates     rates
	results   kit.Results

	challengeKey []byte
}

// New returns the accounts of a broker.
func New(host *extension.Host, o Options) (*Accounts, error) {
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
	return shown(a.readExisting(ctx, id))
}

// GetSelf is Get on behalf of the user.
func (a *Accounts) GetSelf(ctx context.Context, id string, from Caller) (Account, error) {
	s, err := a.read(ctx, id)
	if err == nil {
		err = s.checkLogin(from)
	}
	return shown(s.existing(id, err))
}

// Find returns the account with a name, or a not_found error.
func (a *Accounts) Find(ctx context.Context, text string) (Account, error) {
	n, err := parseName(text)
	if err != nil {
		return Account{}, err
	}
	s, err := a.owner(ctx, n)
	return shown(s.existing(text, err))
}

// readExisting is read, and a not_found error if there is no account with the id.
func (a *Accounts) readExisting(ctx context.Context, id string) (*snapshot, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	s, err := a.read(ctx, id)
	return s.existing(id, err)
}

// existing returns the snapshot of an account, unless err is the error of its read, or a not_found
// error if it does not exist. name is the id or the name of the account.
func (s *snapshot) existing(name string, err error) (*snapshot, error) {
	if err == nil && !s.exists() {
		err = notFound(name)
	}
	return s, err
}

// shown returns what callers see of an account that was read or changed, unless err is the error of
// that.
func shown[A interface{ account() Account }](a A, err error) (Account, error) {
	if err != nil {
		return Account{}, err
	}
	return a.account(), nil
}

// now returns the current time in Unix ms, for display. No decision depends on it.
func now() int64 { return time.Now().UnixMilli() }
