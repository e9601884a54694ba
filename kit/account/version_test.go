package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"switchboard/internal/wire"
	"switchboard/kit"
)

// TestVersions tests that the version of an account changes with its name, nickname and state, and
// with nothing else, and that a change with another version is refused.
func TestVersions(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		s := a.register(t, "amy")
		id, first := s.Account.ID, s.Account.Version
		if first == 0 {
			t.Fatal("the registration answers no version")
		}
		again := ok[Session](t)(b.login(t, "amy", "secret of amy"))
		from := b.caller(t, again)
		for call, got := range map[string]int64{
			"login": again.Account.Version,
			"renew": ok[Session](t)(a.Renew(t.Context(), s.Renewal, here)).Account.Version,
			"get":   ok[Account](t)(b.Get(t.Context(), id)).Version,
			"me":    ok[Account](t)(b.GetSelf(t.Context(), id, from)).Version,
			"find":  ok[Account](t)(b.Find(t.Context(), "amy")).Version,
			"list":  a.listed(t, id).Version,
		} {
			if got != first {
				t.Errorf("%s: the version is %d, want that of the registration, %d", call, got, first)
			}
		}

		stale, current := kit.Match{Version: first - 1}, kit.Match{Version: first}
		for name, call := range map[string]func(kit.Match) (Account, error){
			"rename": func(m kit.Match) (Account, error) { return b.Rename(t.Context(), id, "eve", here, m) },
			"rename self": func(m kit.Match) (Account, error) {
				return b.RenameSelf(t.Context(), id, "eve", "secret of amy", from, m)
			},
			"same name": func(m kit.Match) (Account, error) { return b.Rename(t.Context(), id, "amy", here, m) },
			"nickname":  func(m kit.Match) (Account, error) { return b.SetNickname(t.Context(), id, "Eve", from, m) },
		} {
			_, err := call(stale)
			wantCode(t, err, wire.Conflict)
			detailed, is := errors.AsType[*wire.DetailedError](err)
			if have, isAccount := detailed.Data.(Account); !is || !isAccount || have.Version != first || have.Name != "amy" {
				t.Errorf("%s: the data of the conflict is %+v", name, detailed.Data)
			}
		}

		versions := []int64{first}
		for _, change := range []func(kit.Match) (Account, error){
			func(m kit.Match) (Account, error) { return b.SetNickname(t.Context(), id, "Amy", from, m) },
			func(m kit.Match) (Account, error) { return a.Rename(t.Context(), id, "amelia", here, m) },
			func(m kit.Match) (Account, error) {
				return b.RenameSelf(t.Context(), id, "amy", "secret of amy", from, m)
			},
			func(kit.Match) (Account, error) { return a.Lock(t.Context(), id) },
			func(kit.Match) (Account, error) { return a.Unlock(t.Context(), id) },
		} {
			done := ok[Account](t)(change(current))
			if read := ok[Account](t)(b.Get(t.Context(), id)); read.Version != done.Version || done.Version <= versions[len(versions)-1] {
				t.Errorf("after %v: the change answers %d, a read %d", versions, done.Version, read.Version)
			}
			current.Version = done.Version
			versions = append(versions, done.Version)
		}
		ok[Session](t)(b.login(t, "amy", "secret of amy"))
		if got := a.listed(t, id).Version; got != current.Version {
			t.Errorf("after a login the list has version %d, want %d", got, current.Version)
		}
	})
}

// TestVersionRace tests that of several changes with one version one is made.
func TestVersionRace(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		s := a.register(t, "amy")
		m := kit.Match{Version: s.Account.Version}
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = []instance{a, b}[i%2].SetNickname(t.Context(), s.Account.ID, fmt.Sprint("amy ", i), here, m)
			})
		}
		wg.Wait()
		made := 0
		for _, err := range errs {
			if err == nil {
				made++
			} else {
				wantCode(t, err, wire.Conflict)
			}
		}
		if made != 1 {
			t.Errorf("%d changes are made: %v", made, errs)
		}
	})
}

// listed returns an account as the list has it.
func (i instance) listed(t *testing.T, id string) (found Account) {
	t.Helper()
	for _, raw := range ok[Page](t)(i.List(t.Context(), All, "", 0)).Accounts {
		if err := json.Unmarshal(raw, &found); err != nil {
			t.Fatal(err)
		}
		if found.ID == id {
			return found
		}
	}
	t.Fatalf("account %s is not in the list", id)
	return found
}
