package account

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchboard/internal/wire"
	"switchboard/kit/kittest"
)

// TestTokenReuse: a renewal token works once. Its second use ends the login, also for its thief.
func TestTokenReuse(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		first := a.register(t, "amy")
		other := ok[Session](t)(a.login(t, "amy", "secret of amy"))
		second := ok[Session](t)(b.Renew(t.Context(), first.Renewal, here))
		third := ok[Session](t)(a.Renew(t.Context(), second.Renewal, here))
		_, err := b.Renew(t.Context(), first.Renewal, here)
		wantCode(t, err, wire.Unauthorized)
		_, err = a.Renew(t.Context(), third.Renewal, here)
		wantCode(t, err, wire.Unauthorized)
		other = ok[Session](t)(a.Renew(t.Context(), other.Renewal, here)) // another login is not affected
		if list := ok[[]Event](t)(a.History(t.Context(), first.Account.ID)); list[0].Type != TokenReused {
			t.Errorf("history %+v", list)
		}
		parts := strings.Split(other.Renewal, ".")
		otherText := func(slot, end string) string {
			return strings.Join([]string{parts[0], slot, parts[2], parts[3] + end}, ".")
		}
		for _, bad := range []string{
			"", "x", "a.b.c.d", first.Account.ID + ".99.x.y", first.Account.ID + ".0.x.y",
			otherText("+"+parts[1], ""), otherText("0"+parts[1], ""), otherText(parts[1], "\n"), other.Renewal + "\r",
		} {
			_, err := a.Renew(t.Context(), bad, here)
			wantCode(t, err, wire.Unauthorized)
			wantCode(t, a.Logout(t.Context(), bad, false, here), wire.Unauthorized)
		}
		ok[Session](t)(b.Renew(t.Context(), other.Renewal, here))
	})
}

// TestRenewTwiceAtOnce: two renewals with one token never both succeed and stay valid.
func TestRenewTwiceAtOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		s := a.register(t, "amy")
		var mu sync.Mutex
		var got []string
		parallel(6, func(i int) error {
			next, err := []instance{a, b}[i%2].Renew(t.Context(), s.Renewal, here)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, next.Renewal)
			}
			return nil
		})
		if len(got) != 1 {
			t.Errorf("%d of 6 renewals succeeded", len(got))
		}
		_, err := a.Renew(t.Context(), got[0], here)
		wantCode(t, err, wire.Unauthorized) // the second use ended the login
	})
}

// TestMostLogins: a login above the limit ends the oldest one.
func TestMostLogins(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		list := []Session{a.register(t, "amy")}
		for range 3 {
			list = append(list, ok[Session](t)(b.login(t, "amy", "secret of amy")))
		}
		ended := 0
		for _, s := range list {
			if _, err := a.Renew(t.Context(), s.Renewal, here); err != nil {
				ended++
			}
		}
		if ended != 1 {
			t.Errorf("%d of 4 logins have ended, the limit is 3", ended)
		}
	})
}

// TestRates: attempts are limited by name and by address, whatever they answer.
func TestRates(t *testing.T) {
	a, _ := start(t, kittest.NewMemory(), func(o *Options) { o.NameRate, o.AddressRate, o.RegisterRate = 3, 6, 2 })
	a.register(t, "amy")
	codes := func(n int, f func() error) (list []wire.ErrorCode) {
		for range n {
			e, _ := errors.AsType[*wire.Error](f())
			list = append(list, e.Code)
		}
		return list
	}
	want := []wire.ErrorCode{wire.Unauthorized, wire.Unauthorized, wire.Unauthorized, wire.RateLimited}
	if got := codes(4, func() error { _, err := a.login(t, "amy", "x"); return err }); !slices.Equal(got, want) {
		t.Errorf("by name: %v", got)
	}
	if got := codes(3, func() error { _, err := a.login(t, "bob", "x"); return err }); got[2] != wire.RateLimited {
		t.Errorf("by address: %v", got)
	}
	_, err := a.Challenge(t.Context(), "n,,n=carl,r=abcdefgh", here)
	wantCode(t, err, wire.RateLimited)
	if e, _ := errors.AsType[*wire.Error](err); e.After <= 0 {
		t.Error("it does not say when to try again")
	}
	a.register(t, "bob")
	_, err = a.Register(t.Context(), Registration{Name: "carl", Password: "long enough"}, here)
	wantCode(t, err, wire.RateLimited)
}
