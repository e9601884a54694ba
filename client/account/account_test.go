package account_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/broker/extension"
	"switchboard/client"
	"switchboard/client/account"
	"switchboard/internal/await"
	kit "switchboard/kit/account"
	"switchboard/kit/kittest"
)

func TestMain(m *testing.M) { os.Exit(kittest.Main(m)) }

var key = []byte("the signing key of the tests has 40 bytes")

// start runs a broker with accounts.
func start(t *testing.T, s kittest.Store) *kittest.Broker {
	tokens, err := auth.NewTokens(auth.Options{HS256: [][]byte{key}})
	if err != nil {
		t.Fatal(err)
	}
	makeExtension := kittest.With(func(h *extension.Host) (extension.Extension, error) {
		a, err := kit.New(h, kit.Options{SigningKey: key, Iterations: 4096, Guests: true, TokenLife: 2 * time.Second})
		if err != nil {
			return extension.Extension{}, err
		}
		return a.Extension(), nil
	})
	return s.Start(t, func(o *broker.Options) {
		makeExtension(o)
		o.Access.Tokens = tokens
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code client.ErrorCode) {
	t.Helper()
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

// connect runs a client with the tokens of a session, and returns the errors of its end.
func connect(t *testing.T, b *kittest.Broker, s *account.Session, device string) (connected <-chan client.State, ended <-chan error) {
	t.Helper()
	states, done := make(chan client.State, 100), make(chan error, 1)
	c, err := client.New(client.Options{
		URLs: []string{"ws://" + b.HTTP + "/ws"}, Client: device, TokenSource: s.Token, OnState: func(s client.State) { states <- s },
	})
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { done <- c.Run(ctx); close(stopped) }()
	t.Cleanup(func() { cancel(); <-stopped })
	return states, done
}

// TestLife: an account from its registration to its end, over HTTP and with a connected client.
func TestLife(t *testing.T) {
	kittest.EachStore(t, func(t *testing.T, store kittest.Store) {
		b := start(t, store)
		var stored []string
		accounts, err := account.New(account.Options{URL: "http://" + b.HTTP, Renewed: func(r string) { stored = append(stored, r) }})
		check(t, err)
		ctx := t.Context()
		first, err := accounts.Register(ctx, account.Registration{Name: "amy@example.com", Password: "a long secret", Nickname: "Amy"})
		check(t, err)
		_, err = accounts.Register(ctx, account.Registration{Name: "Amy@example.com", Password: "another secret"})
		wantCode(t, err, client.Conflict)
		_, err = accounts.Login(ctx, account.Credentials{Name: "amy@example.com", Password: "another secret"})
		wantCode(t, err, client.Unauthorized)
		phone, err := accounts.Login(ctx, account.Credentials{Name: "Amy@example.com", Password: "a long secret", Client: "phone"})
		check(t, err)
		web, err := accounts.LoginByPassword(ctx, account.Credentials{Name: "amy@example.com", Password: "a long secret"})
		check(t, err)
		if id := first.Account().ID; phone.Account().ID != id || web.Account().ID != id {
			t.Errorf("three logins have the ids %s, %s, %s", id, phone.Account().ID, web.Account().ID)
		}
		if len(stored) != 3 || stored[1] != phone.Renewal() {
			t.Errorf("%d renewal tokens were stored", len(stored))
		}

		wantCode(t, web.SetNickname(ctx, "Eve", web.Account().Version-1), client.Conflict)
		check(t, web.SetNickname(ctx, "Amelia", web.Account().Version))
		check(t, web.Rename(ctx, "amelia@example.com", "a long secret"))
		wantCode(t, web.Rename(ctx, "amy@example.com", "another secret"), client.Unauthorized)
		if got := web.Account(); got.Name != "amelia@example.com" || got.Nickname != "Amelia" {
			t.Errorf("changed to %+v", got)
		}

		_, ended := connect(t, b, phone, "")
		b.OK(t, "GET", "/v1/accounts/"+phone.Account().ID, "")
		awaitOnline(t, b, phone.Account().ID+"/phone")
		check(t, phone.Logout(ctx, false))
		if closed, ok := errors.AsType[*client.ClosedError](<-ended); !ok || closed.Reason != client.CloseDisconnected {
			t.Errorf("the connection ended with %v", closed)
		}
		wantCode(t, phone.Renew(ctx), client.Unauthorized)
		check(t, web.Renew(ctx))
		resumed, err := accounts.Resume(ctx, web.Renewal())
		check(t, err)

		_, ended = connect(t, b, resumed, "tab")
		awaitOnline(t, b, resumed.Account().ID+"/tab")
		b.OK(t, "POST", "/v1/accounts/"+resumed.Account().ID+"/lock", "")
		if closed, ok := errors.AsType[*client.ClosedError](<-ended); !ok || closed.Reason != client.CloseDisconnected {
			t.Errorf("the connection ended with %v", closed)
		}
		_, err = accounts.Login(ctx, account.Credentials{Name: "amelia@example.com", Password: "a long secret"})
		wantCode(t, err, client.Locked)
		b.OK(t, "POST", "/v1/accounts/"+resumed.Account().ID+"/unlock", "")
		last, err := accounts.Login(ctx, account.Credentials{Name: "amelia@example.com", Password: "a long secret"})
		check(t, err)
		check(t, last.ChangePassword(ctx, "a long secret", "a new secret"))
		wantCode(t, last.Renew(ctx), client.Unauthorized)
		last, err = accounts.Login(ctx, account.Credentials{Name: "amelia@example.com", Password: "a new secret"})
		check(t, err)
		check(t, last.Delete(ctx, "a new secret"))
		_, err = accounts.Login(ctx, account.Credentials{Name: "amelia@example.com", Password: "a new secret"})
		wantCode(t, err, client.Unauthorized)

		o := b.OK(t, "GET", "/v1/accounts?state=deleted", "")
		if o["total"] != 1.0 || len(o["accounts"].([]any)) != 1 {
			t.Errorf("deleted accounts: %v", o)
		}
		events := b.OK(t, "GET", "/v1/accounts/"+last.Account().ID+"/history", "")["events"].([]any)
		if newest := events[0].(kittest.Object)["type"]; newest != "deleted" {
			t.Errorf("the newest event is %v", newest)
		}
		b.OK(t, "GET", "/v1/accounts?name=Amelia@example.com", "")
		b.Refused(t, "not_found", "GET", "/v1/accounts/unknown", "")
		b.Refused(t, "unauthorized", "GET", "/v1/accounts/me", "")
	})
}

// awaitOnline waits until a client is online.
func awaitOnline(t *testing.T, b *kittest.Broker, client string) {
	t.Helper()
	await.True(t, client+" is online", func() bool {
		var o kittest.Object
		return b.Call(t, "GET", "/v1/clients/"+client, "", &o) == 200 && o["online"] == true
	})
}

// TestGuest: an account without a name gets one later.
func TestGuest(t *testing.T) {
	b := start(t, kittest.NewMemory())
	accounts, err := account.New(account.Options{URL: "http://" + b.HTTP})
	check(t, err)
	guest, err := accounts.Register(t.Context(), account.Registration{Nickname: "Visitor"})
	check(t, err)
	wantCode(t, guest.ChangePassword(t.Context(), "", "a long secret"), client.BadRequest)
	check(t, guest.Rename(t.Context(), "amy", "a long secret"))
	s, err := accounts.Login(t.Context(), account.Credentials{Name: "amy", Password: "a long secret"})
	check(t, err)
	if s.Account().ID != guest.Account().ID {
		t.Error("the guest got another id")
	}
}

// TestTokenSource: a connection outlives several tokens.
func TestTokenSource(t *testing.T) {
	b := start(t, kittest.NewMemory())
	accounts, err := account.New(account.Options{URL: "http://" + b.HTTP})
	check(t, err)
	s, err := accounts.Register(t.Context(), account.Registration{})
	check(t, err)
	renewal := s.Renewal()
	states, ended := connect(t, b, s, "tab")
	for connected := 0; connected < 2; {
		select {
		case state := <-states:
			if state.Phase == client.Connected {
				connected++
			}
		case err := <-ended:
			t.Fatalf("the client ended: %v", err)
		}
	}
	if s.Renewal() == renewal {
		t.Error("the second connection needs a renewal")
	}
}

func TestBadURL(t *testing.T) {
	for _, bad := range []string{"", "push.example.com", "ws://push.example.com"} {
		if _, err := account.New(account.Options{URL: bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
