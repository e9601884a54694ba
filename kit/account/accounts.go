package account

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/broker/auth"
	"switchboard/broker/extension"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
)

// Accounts is the accounts of a broker. All brokers with the same store and options have the same
// accounts.
type Accounts struct {
	opts      Options // with all values set
	store     Store
	index     index.Index
	documents kit.Documents[*snapshot]
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
		a.store = kit.HostStore(host)
	}
	a.documents = documentsIn(a.store, a.index)
	a.documents.Log = a.log
	if a.tokens, err = newVerifier(o); err != nil {
		return nil, err
	}
	return a, a.checkTokens()
}

// Get returns an account, or a not_found error.
func (a *Accounts) Get(ctx context.Context, id string) (Account, error) {
	return shown(a.documents.Get(ctx, id))
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

// existing returns the snapshot of an account, unless err is the error of its read, or a not_found
// error if it does not exist. name is the id or the name of the account.
func (s *snapshot) existing(name string, err error) (*snapshot, error) {
	if err == nil && !s.Exists() {
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

// Extension returns accounts as a part of the broker.
func (a *Accounts) Extension() extension.Extension {
	return extension.Extension{
		Name: "accounts", Calls: slices.Concat(a.publicCalls(), a.backendCalls()), Run: a.Run,
		Metrics: []prometheus.Collector{a.results, a.newCollector()},
		Channels: []extension.ChannelKind{
			closed(accountPrefix, namespace.KeepForever), closed(namePrefix, namespace.KeepForever),
		},
	}
}

// maxLogged is the most messages that a channel keeps. They are of no use.
const maxLogged = 1

// closed returns channels that no client may use.
func closed(prefix string, keep time.Duration) extension.ChannelKind {
	return extension.ChannelKind{Rule: namespace.Rule{
		Name: prefix + "*", NoPresence: true, HistoryMessages: maxLogged, StateKeep: keep,
	}}
}

// newCollector returns the number of accounts.
func (a *Accounts) newCollector() prometheus.Collector {
	accounts := prometheus.NewDesc("switchboard_accounts", "Accounts by state, in all brokers.", []string{"state"}, nil)
	return kit.Gauges{
		Descs: []*prometheus.Desc{accounts},
		Count: func(ctx context.Context, set func(*prometheus.Desc, int, ...string)) {
			counts, err := a.index.Count(ctx, string(Open), string(Locked), string(Deleted))
			if err != nil {
				return
			}
			for i, state := range []State{Open, Locked, Deleted} {
				set(accounts, counts[i], string(state))
			}
		},
	}
}

// Lock locks an account: all logins and connections end, and no login succeeds. It does nothing to
// a locked one; a deleted one is a conflict.
func (a *Accounts) Lock(ctx context.Context, id string) (Account, error) {
	return a.setState(ctx, id, Locked, WasLocked, Open)
}

// Unlock makes a locked account open.
func (a *Accounts) Unlock(ctx context.Context, id string) (Account, error) {
	return a.setState(ctx, id, Open, WasUnlocked, Locked)
}

// Delete marks an account as deleted: all logins and connections end, and no login succeeds. Its
// name stays taken, so that Restore can bring it back.
func (a *Accounts) Delete(ctx context.Context, id string) (Account, error) {
	return a.setState(ctx, id, Deleted, WasDeleted, Open, Locked)
}

// Restore makes an account that was marked as deleted open.
func (a *Accounts) Restore(ctx context.Context, id string) (Account, error) {
	return a.setState(ctx, id, Open, WasRestored, Deleted)
}

// setState changes the state of an account if it is one of from. If the state is there already,
// nothing changes.
func (a *Accounts) setState(ctx context.Context, id string, to State, event EventType, from ...State) (Account, error) {
	e, err := a.edit(ctx, id, func(e *edit) error {
		switch {
		case e.next.State == to:
			return errNothing
		case !slices.Contains(from, e.next.State):
			return wire.Errorf(wire.Conflict, "the account is %s", e.next.State).With(e.snapshot.account())
		}
		e.next.State = to
		if to != Open {
			e.endLogins()
		}
		e.log(Event{Type: event})
		return nil
	})
	if err == errNothing {
		if to != Open { // an earlier call may have failed after its change
			if err := a.host.Disconnect(ctx, id); err != nil {
				return Account{}, err
			}
		}
		return a.Get(ctx, id)
	}
	return shown(e, err)
}

// SetPassword replaces the password of an account. All logins and connections end.
func (a *Accounts) SetPassword(ctx context.Context, id, password string) (Account, error) {
	c, err := a.passwords.create(ctx, password)
	if err != nil {
		return Account{}, err
	}
	return shown(a.edit(ctx, id, func(e *edit) error {
		if e.next.Name == "" {
			return wire.Errorf(wire.Conflict, "the account is a guest's: it has no name")
		}
		e.set(scramField, c, 0)
		e.endLogins()
		e.log(Event{Type: NewPassword})
		return nil
	}))
}
