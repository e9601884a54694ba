package account

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"switchboard/broker/extension"
	"switchboard/internal/await"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/kittest"
)

// TestAccountsEnd checks that guests and accounts end when they are not used for their life, with
// their cards and names, and that a renewal and a login keep them.
func TestAccountsEnd(t *testing.T) {
	t.Parallel() // it mostly waits
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		a, _ := start(t, s, func(o *Options) {
			o.RenewalLife, o.GuestLife, o.AccountLife = time.Second, time.Second, 2*time.Second
			o.CallRate = 1_000_000 // of the renewals
		})
		ctx := t.Context()
		guest := ok[Session](t)(a.Register(ctx, Registration{}, here))
		named := a.register(t, "amy")
		used := ok[Session](t)(a.Register(ctx, Registration{}, here))
		await.True(t, "the account ends", func() bool {
			used = ok[Session](t)(a.Renew(ctx, used.Renewal, here))
			_, err := a.Get(ctx, named.Account.ID)
			return err != nil
		})
		_, err := a.Get(ctx, guest.Account.ID)
		wantCode(t, err, wire.NotFound)
		ok[Account](t)(a.Get(ctx, used.Account.ID))
		await.True(t, "the list has only the guest that was used", func() bool {
			used = ok[Session](t)(a.Renew(ctx, used.Renewal, here))
			page := ok[Page](t)(a.List(ctx, All, "", 0))
			return len(page.Accounts) == 1 && page.Total == 1
		})
		await.True(t, "the name is free", func() bool {
			_, err := a.Register(ctx, Registration{Name: "amy", Password: "another secret"}, here)
			return err == nil
		})
	})
}

// TestAccountsStay checks that the guest that takes a name, and an account without AccountLife, do
// not end.
func TestAccountsStay(t *testing.T) {
	t.Parallel() // it mostly waits
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		a, _ := start(t, s, func(o *Options) { o.RenewalLife, o.GuestLife = time.Second, time.Second })
		ctx := t.Context()
		promoted := ok[Session](t)(a.Register(ctx, Registration{}, here))
		ok[Account](t)(a.Upgrade(ctx, promoted.Account.ID, "bob", "secret of bob", a.caller(t, promoted), kit.Match{}))
		guest := ok[Session](t)(a.Register(ctx, Registration{}, here)) // later
		await.True(t, "the guest ends", func() bool {
			_, err := a.Get(ctx, guest.Account.ID)
			return err != nil
		})
		if got := ok[Account](t)(a.Get(ctx, promoted.Account.ID)); got.Name != "bob" {
			t.Errorf("the account is %+v", got)
		}
	})
}

// TestLives checks the defaults and the bounds of GuestLife and AccountLife.
func TestLives(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		renewal, guest, account, want time.Duration // want is the GuestLife, 0 for an error
	}{
		{want: 30 * day},
		{renewal: 90 * day, want: 90 * day},
		{renewal: day, guest: 7 * day, account: day, want: 7 * day},
		{renewal: day, guest: time.Hour},
		{account: day},
	} {
		o := options()
		o.RenewalLife, o.GuestLife, o.AccountLife = c.renewal, c.guest, c.account
		if got, err := o.withDefaults(); (err != nil) != (c.want == 0) || err == nil && got.GuestLife != c.want {
			t.Errorf("%+v: %v, %v", c, got.GuestLife, err)
		}
	}
}

// TestForget checks that the extensions forget the users of accounts that have ended: guests that
// were not used, and deleted accounts that were not restored. After an error they are asked again.
func TestForget(t *testing.T) {
	t.Parallel() // it mostly waits
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		var mu sync.Mutex // guards the fields below
		failed, forgotten := false, map[string]bool{}
		owner := kittest.With(func(*extension.Host) (extension.Extension, error) {
			return extension.Extension{Name: "owner", Owned: []extension.Owned{{Kind: "things", Forget: func(_ context.Context, users []string) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				if !failed {
					failed = true
					return 0, errors.New("the store does not answer")
				}
				for _, user := range users {
					forgotten[user] = true
				}
				return len(users), nil
			}}}}, nil
		})
		o := options()
		o.Index = s.Index("accounts")
		o.TokenLife, o.RenewalLife, o.GuestLife, o.DeletedLife = time.Second, time.Second, time.Second, time.Second
		a := startOne(t, s, o, owner)
		ctx := t.Context()
		guest := ok[Session](t)(a.Register(ctx, Registration{}, here)).Account.ID
		deleted, restored, stays := a.register(t, "amy").Account.ID, a.register(t, "bob").Account.ID, a.register(t, "eve").Account.ID
		ok[Account](t)(a.Delete(ctx, deleted))
		ok[Account](t)(a.Delete(ctx, restored))
		ok[Account](t)(a.Restore(ctx, restored))
		await.True(t, "the users are forgotten", func() bool {
			mu.Lock()
			defer mu.Unlock()
			if failed && len(forgotten) < 2 { // a lease lasts a minute
				_ = a.index.Schedule(ctx, time.Millisecond, userTask+guest, userTask+deleted)
			}
			return forgotten[guest] && forgotten[deleted]
		})
		_, err := a.Get(ctx, deleted)
		wantCode(t, err, wire.NotFound)
		await.True(t, "the name is free", func() bool {
			_, err := a.Register(ctx, Registration{Name: "amy", Password: "another secret"}, here)
			return err == nil
		})
		for _, id := range []string{restored, stays} {
			if got := ok[Account](t)(a.Get(ctx, id)); got.State != Open || forgotten[id] {
				t.Errorf("the account is %+v", got)
			}
		}
	})
}
