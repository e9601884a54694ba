package account

import (
	"errors"
	"net/netip"
	"os"
	"testing"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/broker/extension"
	"switchboard/internal/await"
	"switchboard/internal/wire"
	"switchboard/kit/kittest"
)

func TestMain(m *testing.M) { os.Exit(kittest.Main(m)) }

var signingKey = []byte("the signing key of the tests has 40 bytes")

// here is a caller with an address.
var here = Caller{Address: netip.MustParseAddr("192.0.2.7")}

// instance is a broker with accounts.
type instance struct {
	*kittest.Broker
	*Accounts
}

// options are those of the tests: passwords that cost little.
func options() Options {
	return Options{
		SigningKey: signingKey, Iterations: minIteration, Guests: true,
		NameRate: 1000, AddressRate: 10_000, RegisterRate: 10_000, Logins: 3,
	}
}

// start runs two brokers with accounts, or one in memory, which is then returned twice. change may
// be nil.
func start(t *testing.T, s kittest.Store, change func(*Options)) (a, b instance) {
	t.Helper()
	o := options()
	o.Index = s.Index("accounts")
	if change != nil {
		change(&o)
	}
	a = startOne(t, s, o)
	if !s.Shared {
		return a, a
	}
	b = startOne(t, s, o)
	await.True(t, "the brokers see each other", func() bool { return len(a.Servers()) == 2 && len(b.Servers()) == 2 })
	return a, b
}

func startOne(t *testing.T, s kittest.Store, o Options, more ...func(*broker.Options)) (i instance) {
	t.Helper()
	tokens, err := auth.NewTokens(auth.Options{HS256: [][]byte{signingKey}})
	if err != nil {
		t.Fatal(err)
	}
	makeExtension := kittest.With(func(h *extension.Host) (extension.Extension, error) {
		var err error
		if i.Accounts, err = New(h, o); err != nil {
			return extension.Extension{}, err
		}
		return i.Accounts.Extension(), nil
	})
	i.Broker = s.Start(t, func(o *broker.Options) {
		makeExtension(o)
		for _, change := range more {
			change(o)
		}
		o.Access.Tokens = tokens
	})
	return i
}

// eachStore runs a test with two brokers over memory, Redis and a Cluster.
func eachStore(t *testing.T, test func(t *testing.T, a, b instance)) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		a, b := start(t, s, nil)
		test(t, a, b)
	})
}

// ok returns v and fails the test if there is an error.
func ok[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wantCode fails the test unless err has the code.
func wantCode(t *testing.T, err error, code wire.ErrorCode) {
	t.Helper()
	if e, is := errors.AsType[*wire.Error](err); !is || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

// register makes an account with the password "secret of NAME".
func (i instance) register(t *testing.T, name string) Session {
	t.Helper()
	return ok[Session](t)(i.Register(t.Context(), Registration{Name: name, Password: "secret of " + name}, here))
}

// caller returns the caller that shows the token of a session, and its renewal token.
func (i instance) caller(t *testing.T, s Session) Caller {
	t.Helper()
	id, login, err := i.bearer("Bearer " + s.Token)
	if err != nil || id != s.Account.ID {
		t.Fatalf("the token is for %s: %v", id, err)
	}
	return Caller{Address: here.Address, Login: login, Renewal: s.Renewal}
}

// login logs in with a password.
func (i instance) login(t *testing.T, name, password string) (Session, error) {
	return i.Accounts.Login(t.Context(), Credentials{Name: name, Password: password}, here)
}
