package account

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/kittest"
)

// TestEndedLogin: the token of a login that has ended neither reads nor changes the account,
// whatever ended the login.
func TestEndedLogin(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		for i, end := range []func(s Session) error{
			func(s Session) error { return a.Logout(t.Context(), s.Renewal, false, here) },
			func(s Session) error {
				other := ok[Session](t)(b.login(t, s.Account.Name, "secret of "+s.Account.Name))
				return b.Logout(t.Context(), other.Renewal, true, here)
			},
			func(s Session) error {
				ok[Session](t)(a.Renew(t.Context(), s.Renewal, here))
				_, err := b.Renew(t.Context(), s.Renewal, here) // again
				wantCode(t, err, wire.Unauthorized)
				return nil
			},
			func(s Session) error {
				ok[Account](t)(a.Lock(t.Context(), s.Account.ID))
				_, err := b.Unlock(t.Context(), s.Account.ID)
				return err
			},
			func(s Session) error {
				_, err := a.SetPassword(t.Context(), s.Account.ID, "secret of "+s.Account.Name)
				return err
			},
			func(s Session) error {
				for range 3 { // more than Options.Logins
					ok[Session](t)(a.login(t, s.Account.Name, "secret of "+s.Account.Name))
				}
				return nil
			},
		} {
			name := fmt.Sprint("user-", i)
			s := a.register(t, name)
			from, id, password := b.caller(t, s), s.Account.ID, "secret of "+name
			ok[Account](t)(b.GetSelf(t.Context(), id, from))
			ok[Account](t)(b.SetNickname(t.Context(), id, "before", from, kit.Match{}))
			if err := end(s); err != nil {
				t.Fatal(err)
			}
			for what, call := range map[string]func() (Account, error){
				"read":            func() (Account, error) { return b.GetSelf(t.Context(), id, from) },
				"change nickname": func() (Account, error) { return b.SetNickname(t.Context(), id, "after", from, kit.Match{}) },
				"rename": func() (Account, error) {
					return b.RenameSelf(t.Context(), id, "other-"+name, password, from, kit.Match{})
				},
				"change password": func() (Account, error) { return b.ChangePassword(t.Context(), id, password, "another secret", from) },
				"delete":          func() (Account, error) { return b.DeleteSelf(t.Context(), id, password, from) },
			} {
				_, err := call()
				if e, is := err.(*wire.Error); !is || e.Code != wire.Unauthorized {
					t.Errorf("%d: %s: %v", i, what, err)
				}
			}
			if got := ok[Account](t)(a.Get(t.Context(), id)); got.Nickname != "before" || got.Name != name || got.State != Open {
				t.Errorf("%d: changed to %+v", i, got)
			}
		}
	})
}

// TestGuestTakeover: a token of a guest is not enough to give its account a name and a password, or
// to delete it. The guest shows its renewal token, too.
func TestGuestTakeover(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		guest := ok[Session](t)(a.Register(t.Context(), Registration{}, here))
		other := ok[Session](t)(a.Register(t.Context(), Registration{}, here))
		id, from := guest.Account.ID, b.caller(t, guest)
		stolen := from
		parts := strings.Split(guest.Renewal, ".")
		for _, renewal := range []string{
			"", "x", other.Renewal, parts[0] + ".1." + parts[2] + "." + parts[3], strings.Replace(guest.Renewal, parts[2], parts[3], 1),
			strings.Replace(other.Renewal, other.Account.ID, id, 1),
		} {
			stolen.Renewal = renewal
			_, err := b.RenameSelf(t.Context(), id, "mallory", "a long secret", stolen, kit.Match{})
			wantCode(t, err, wire.Unauthorized)
			_, err = b.Upgrade(t.Context(), id, "mallory", "a long secret", stolen, kit.Match{})
			wantCode(t, err, wire.Unauthorized)
			_, err = b.DeleteSelf(t.Context(), id, "", stolen)
			wantCode(t, err, wire.Unauthorized)
		}
		got := ok[Account](t)(b.RenameSelf(t.Context(), id, "amy", "a long secret", from, kit.Match{}))
		if got.Name != "amy" || got.ID != id {
			t.Errorf("upgraded to %+v", got)
		}
		ok[Session](t)(a.login(t, "amy", "a long secret"))
		ok[Account](t)(b.DeleteSelf(t.Context(), other.Account.ID, "", b.caller(t, other)))

		// A renewal token that was used before may be stolen.
		third := ok[Session](t)(a.Register(t.Context(), Registration{}, here))
		next := ok[Session](t)(a.Renew(t.Context(), third.Renewal, here))
		_, err := b.RenameSelf(t.Context(), third.Account.ID, "carl", "a long secret", b.caller(t, third), kit.Match{})
		wantCode(t, err, wire.Unauthorized)
		_, err = a.Renew(t.Context(), next.Renewal, here)
		wantCode(t, err, wire.Unauthorized)
	})
}

// TestNicknamesKeepHistory: changes of the nickname do not remove logins from the history.
func TestNicknamesKeepHistory(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		s := a.register(t, "amy")
		from := a.caller(t, s)
		for i := range HistorySize + 20 {
			ok[Account](t)([]instance{a, b}[i%2].SetNickname(t.Context(), s.Account.ID, fmt.Sprint("amy ", i), from, kit.Match{}))
		}
		list := ok[[]Event](t)(b.History(t.Context(), s.Account.ID))
		if len(list) != 2 || list[0].Type != NewNickname || list[1].Type != Registered {
			t.Errorf("history: %+v", list)
		}
		ok[Session](t)(a.login(t, "amy", "secret of amy"))
		ok[Account](t)(b.SetNickname(t.Context(), s.Account.ID, "Amy", from, kit.Match{}))
		if list := ok[[]Event](t)(b.History(t.Context(), s.Account.ID)); len(list) != 4 || list[0].N != 4 {
			t.Errorf("history: %+v", list)
		}
	})
}

// TestRatesOfTokens: calls that compute no password have rates, too.
func TestRatesOfTokens(t *testing.T) {
	a, _ := start(t, kittest.NewMemory(), func(o *Options) { o.CallRate, o.NameRate = 4, 3 })
	s := a.register(t, "amy")
	for range 3 {
		ok[Account](t)(a.SetNickname(t.Context(), s.Account.ID, "Amy", a.caller(t, s), kit.Match{}))
	}
	_, err := a.SetNickname(t.Context(), s.Account.ID, "Amy", a.caller(t, s), kit.Match{})
	wantCode(t, err, wire.RateLimited)
	for range 2 {
		a.OK(t, "GET", "/v1/accounts/me", "", "Authorization", "Bearer "+s.Token)
	}
	a.Refused(t, "unauthorized", "POST", "/v1/accounts/renew", `{"renewal":"x"}`)
	a.Refused(t, "unauthorized", "POST", "/v1/accounts/logout", `{"renewal":"x"}`)
	for _, call := range []string{"POST /v1/accounts/renew", "GET /v1/accounts/me", "PATCH /v1/accounts/me", "POST /v1/accounts/logout"} {
		method, path, _ := strings.Cut(call, " ")
		a.Refused(t, "rate_limited", method, path, `{"renewal":"x"}`)
	}
}

// TestPasswordsAreRefusedFirst: no password is computed for a call over the rate.
func TestPasswordsAreRefusedFirst(t *testing.T) {
	a, _ := start(t, kittest.NewMemory(), func(o *Options) { o.NameRate = 3 })
	s := a.register(t, "amy")
	from, before := a.caller(t, s), a.passwords.turns.taken()
	for i := range 10 {
		_, err := a.ChangePassword(t.Context(), s.Account.ID, "wrong", "another secret", from)
		want := wire.Unauthorized
		if i >= 3 {
			want = wire.RateLimited
		}
		wantCode(t, err, want)
	}
	if n := a.passwords.turns.taken() - before; n != 3 {
		t.Errorf("%d passwords were computed", n)
	}
}

// taken returns how many turns there were.
func (t *turns) taken() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.arrived
}

// TestFormerPasswordIsGone: nothing in the store shows a password that was replaced, also in a
// Redis of the accounts alone.
func TestFormerPasswordIsGone(t *testing.T) {
	for name, own := range map[string]bool{"store of the broker": false, "own store": true} {
		t.Run(name, func(t *testing.T) {
			store := kittest.NewRedis(kittest.Redis.Client(t))
			a, _ := start(t, store, func(o *Options) {
				if own {
					o.Store = RedisStore(store.Pipe, store.Prefix+"own:")
				}
			})
			s := a.register(t, "amy")
			former := ok[*snapshot](t)(a.read(t.Context(), s.Account.ID)).scram.Value
			ok[Account](t)(a.ChangePassword(t.Context(), s.Account.ID, "secret of amy", "another secret", a.caller(t, s)))
			ctx, found := t.Context(), 0
			keys := store.Redis.Scan(ctx, 0, store.Prefix+"*", 1000).Iterator()
			for keys.Next(ctx) {
				found++
				text := contentOf(t, store, keys.Val())
				if strings.Contains(text, textOf(former.StoredKey)) || strings.Contains(text, textOf(former.Salt)) {
					t.Errorf("%s has a former password", keys.Val())
				}
			}
			if found == 0 || keys.Err() != nil {
				t.Errorf("%d keys: %v", found, keys.Err())
			}
		})
	}
}

// contentOf returns the texts in a key.
func contentOf(t *testing.T, store kittest.Store, key string) string {
	t.Helper()
	switch kind := ok[string](t)(store.Redis.Type(t.Context(), key).Result()); kind {
	case "hash":
		return fmt.Sprint(ok[map[string]string](t)(store.Redis.HGetAll(t.Context(), key).Result()))
	case "zset":
		return fmt.Sprint(ok[[]string](t)(store.Redis.ZRange(t.Context(), key, 0, -1).Result()))
	case "string":
		return ok[string](t)(store.Redis.Get(t.Context(), key).Result())
	default:
		return ""
	}
}

// textOf returns bytes as JSON has them.
func textOf(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
