package account

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// parallel runs f n times at once and returns its errors.
func parallel(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errs
}

// successes returns how many calls succeeded. All others must be conflicts.
func successes(t *testing.T, errs []error) (n int) {
	t.Helper()
	for _, err := range errs {
		if err == nil {
			n++
			continue
		}
		wantCode(t, err, wire.Conflict)
	}
	return n
}

// TestTwoRegistrationsOfOneName: one of many succeeds.
func TestTwoRegistrationsOfOneName(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		for round := range 5 {
			name := fmt.Sprint("amy-", round)
			errs := parallel(8, func(i int) error {
				_, err := []instance{a, b}[i%2].Register(t.Context(), Registration{Name: name, Password: "long enough"}, here)
				return err
			})
			if n := successes(t, errs); n != 1 {
				t.Fatalf("%d of 8 registrations succeeded", n)
			}
			ok[Session](t)(a.login(t, name, "long enough"))
		}
	})
}

// TestRenameInTwoPlaces: several accounts rename to one name, and one account to several names.
// Each name then has one account, and each account the one name that it shows.
func TestRenameInTwoPlaces(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		list := []instance{a, b}
		var ids []string
		for i := range 4 {
			ids = append(ids, a.register(t, fmt.Sprint("user-", i)).Account.ID)
		}
		rename := func(i int, id, name string) error {
			_, err := list[i%2].Rename(t.Context(), id, name, here, kit.Match{})
			return err
		}
		if n := successes(t, parallel(8, func(i int) error { return rename(i, ids[i%4], "wanted") })); n < 1 {
			t.Error("no account got the name")
		}
		if n := successes(t, parallel(8, func(i int) error { return rename(i, ids[0], fmt.Sprint("choice-", i)) })); n < 1 {
			t.Error("the account got no name")
		}
		// The names of all accounts are theirs, and all other names are free at once or after
		// their claims.
		taken := map[string]string{}
		for _, id := range ids {
			got := ok[Account](t)(b.Get(t.Context(), id))
			if taken[got.Name] != "" {
				t.Errorf("%s belongs to two accounts", got.Name)
			}
			taken[got.Name] = id
			if found := ok[Account](t)(a.Find(t.Context(), got.Name)); found.ID != id {
				t.Errorf("%s belongs to %s and to %s", got.Name, id, found.ID)
			}
		}
		for _, name := range []string{"user-0", "user-1", "wanted", "choice-0", "choice-1"} {
			if _, err := a.Find(t.Context(), name); (err == nil) != (taken[name] != "") {
				t.Errorf("%s: %v, but it belongs to %q", name, err, taken[name])
			}
		}
	})
}

// TestFormerNameIsFree: a renamed account logs in by its new name only, and others may take the
// former one.
func TestFormerNameIsFree(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		id := a.register(t, "amy").Account.ID
		got := ok[Account](t)(b.RenameSelf(t.Context(), id, "Amelia", "secret of amy", here, kit.Match{}))
		if got.Name != "amelia" || got.ID != id {
			t.Errorf("renamed to %+v", got)
		}
		_, err := a.login(t, "amy", "secret of amy")
		wantCode(t, err, wire.Unauthorized)
		ok[Session](t)(a.login(t, "amelia", "secret of amy"))
		other := b.register(t, "amy")
		if other.Account.ID == id {
			t.Error("an id was given twice")
		}
		ok[Account](t)(a.Rename(t.Context(), other.Account.ID, "bob", here, kit.Match{}))
		ok[Account](t)(a.Rename(t.Context(), id, "amy", here, kit.Match{})) // back
		_, err = b.RenameSelf(t.Context(), id, "carl", "not the secret", here, kit.Match{})
		wantCode(t, err, wire.Unauthorized)
	})
}

// endClaim ends the claim of an account, as the end of its lease does.
func (a *Accounts) endClaim(t *testing.T, id string) {
	t.Helper()
	u := new(state.Update)
	u.Ops = []state.Op{{Field: claimField, Kind: state.Delete}}
	ok[kit.Changed](t)(a.store.Change(t.Context(), accountPrefix+id, u, false))
}

// TestCrashBetweenTheWrites: a process stops after each step of a registration. The name is taken
// while the account may still get it, and then free. The first process cannot finish later.
func TestCrashBetweenTheWrites(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		n := ok[name](t)(parseName("amy"))
		s := &snapshot{id: newID(), grants: make([]kit.Record[grant], MaxLogins)}
		claim := ok[int64](t)(a.claimName(t.Context(), s, n)) // and here the process stops
		again := Registration{Name: "amy", Password: "long enough"}
		_, err := b.Register(t.Context(), again, here)
		wantCode(t, err, wire.Conflict)
		_, err = b.login(t, "amy", "long enough")
		wantCode(t, err, wire.Unauthorized)
		if later := ok[bool](t)(b.sweepName(t.Context(), n.digest)); !later {
			t.Error("the name of a registration under way was swept")
		}

		a.endClaim(t, s.id)
		amy := ok[Session](t)(b.Register(t.Context(), again, here))
		late := begin(s)
		late.takeName(n, claim)
		if err := a.commit(t.Context(), late); !kit.HasCode(err, wire.Conflict) {
			t.Errorf("the registration that was interrupted ended with %v", err)
		}
		if got := ok[Account](t)(a.Find(t.Context(), "amy")); got.ID != amy.Account.ID {
			t.Errorf("the name belongs to %+v", got)
		}
	})
}

// TestSweepFreesNames: the round removes the holder of a name that never got it, and that of a
// former name, but no other.
func TestSweepFreesNames(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		s := &snapshot{id: newID(), grants: make([]kit.Record[grant], MaxLogins)}
		lost, amy := ok[name](t)(parseName("lost")), ok[name](t)(parseName("amy"))
		ok[int64](t)(a.claimName(t.Context(), s, lost))
		a.endClaim(t, s.id)
		a.register(t, "amy")
		for _, n := range []name{lost, amy} {
			if again := ok[bool](t)(b.sweepName(t.Context(), n.digest)); again {
				t.Error("there is nothing to wait for")
			}
		}
		if h := ok[holder](t)(a.holder(t.Context(), lost.digest)); h.field != 0 {
			t.Error("the name that no account has is still taken")
		}
		if h := ok[holder](t)(a.holder(t.Context(), amy.digest)); !h.owns {
			t.Error("the name of an account was swept")
		}
	})
}

// TestRoundShowsAccounts: a change whose process stopped before it wrote the list is shown later.
func TestRoundShowsAccounts(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		id := a.register(t, "amy").Account.ID
		e := begin(ok[*snapshot](t)(a.read(t.Context(), id)))
		e.next.State = Locked
		e.set(recordField, e.next, 0)
		ok[kit.Changed](t)(a.store.Change(t.Context(), accountPrefix+id, e.update, false))
		if err := a.index.Schedule(t.Context(), time.Millisecond, id); err != nil {
			t.Fatal(err)
		}
		await.True(t, "the list shows the lock", func() bool {
			if err := b.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
			return ok[Page](t)(b.List(t.Context(), Locked, "", 10)).Total == 1
		})
		if p := ok[Page](t)(b.List(t.Context(), Open, "", 10)); p.Total != 0 || len(p.Accounts) != 0 {
			t.Errorf("open accounts: %+v", p)
		}
	})
}

// TestLockAgainstLogins: no login or renewal that runs at the same time survives a lock.
func TestLockAgainstLogins(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		s := a.register(t, "amy")
		var mu sync.Mutex
		renewals := []string{s.Renewal}
		errs := parallel(7, func(i int) error {
			if i == 3 {
				_, err := a.Lock(t.Context(), s.Account.ID)
				return err
			}
			got, err := []instance{a, b}[i%2].login(t, "amy", "secret of amy")
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				renewals = append(renewals, got.Renewal)
			}
			return nil
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for _, r := range renewals {
			_, err := b.Renew(t.Context(), r, here)
			wantCode(t, err, wire.Unauthorized)
		}
		_, err := b.login(t, "amy", "secret of amy")
		wantCode(t, err, wire.Locked)
		_, err = b.login(t, "amy", "another secret")
		wantCode(t, err, wire.Unauthorized)
		ok[Account](t)(b.Unlock(t.Context(), s.Account.ID))
		ok[Session](t)(a.login(t, "amy", "secret of amy"))
	})
}
