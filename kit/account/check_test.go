package account

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/queue"
)

// TestCheck damages names, records and the list in Redis. The check finds each damage. After the
// account has changed as the remedy says, it finds nothing.
func TestCheck(t *testing.T) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		if !s.Shared {
			return
		}
		a, _ := start(t, s, nil)
		check := Check(kit.CheckOptions{Index: s.Index("accounts"), States: s.Queue.(*queue.Redis)})
		find := func() (lines []string) {
			found, err := check.Find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if f.Remedy == "" {
					t.Errorf("%v has no remedy", f)
				}
				lines = append(lines, f.Subject+": "+f.Problem)
			}
			return lines
		}
		id := a.register(t, "amy").Account.ID
		bob := a.register(t, "bob").Account.ID
		ok[Session](t)(a.Register(t.Context(), Registration{}, here))
		if got := find(); len(got) > 0 {
			t.Fatalf("found %q", got)
		}
		channel, amy := accountPrefix+id, named("amy").digest
		change := func(channel string, op state.Op) {
			u := new(state.Update)
			u.Ops = append(u.Ops, op)
			ok[kit.Changed](t)(a.store.Change(t.Context(), channel, u, false))
		}
		put := func(c index.Card) {
			if err := a.index.Put(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		rename := func() {
			ok[Account](t)(a.Rename(t.Context(), id, "amelia", here, kit.Match{}))
			ok[Account](t)(a.Rename(t.Context(), id, "amy", here, kit.Match{}))
		}
		login := func() { ok[Session](t)(a.login(t, "amy", "secret of amy")) }
		for _, d := range []struct {
			want           string
			damage, remedy func()
		}{
			{
				channel + ": its record has a name whose account-name:" + amy + " names no account",
				func() { change(namePrefix+amy, state.Op{Field: idField, Kind: state.Delete}) }, rename,
			}, {
				channel + ": its record has a name whose account-name:" + amy + " names the account " + bob,
				func() { change(namePrefix+amy, setOp(idField, bob, 0)) }, rename,
			}, {
				namePrefix + named("eve").digest + ": it names the account " + bob + ", whose record has another name",
				func() { change(namePrefix+named("eve").digest, setOp(idField, bob, 0)) },
				func() { ok[Account](t)(a.Rename(t.Context(), bob, "eve", here, kit.Match{})) },
			}, {
				namePrefix + amy + ": its field $$id is malformed",
				func() { change(namePrefix+amy, setOp(idField, 1, 0)) },
				func() { change(namePrefix+amy, setOp(idField, id, 0)) },
			}, {
				channel + ": its card in the list is not that of the record",
				func() {
					c := ok[[]index.Card](t)(a.index.Get(t.Context(), id))[0]
					c.Lists = map[string]int64{allAccounts: 1}
					put(c)
				}, login,
			}, {
				channel + ": its card in the list is not that of the record",
				func() {
					c := ok[[]index.Card](t)(a.index.Get(t.Context(), id))[0]
					put(index.Card{ID: id, Version: c.Version})
				}, login,
			}, {
				accountPrefix + "lost: it has a card in the list, but no record",
				func() { put(index.Card{ID: "lost", Version: 1, Lists: map[string]int64{allAccounts: 1}}) },
				func() { put(index.Card{ID: "lost", Version: 2}) },
			},
		} {
			d.damage()
			if got := find(); !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, d.want) }) {
				t.Errorf("found %q, want %q", got, d.want)
			}
			d.remedy()
			if got := find(); len(got) > 0 {
				t.Errorf("after the remedy of %q: found %q", d.want, got)
			}
		}
		record := record{Version: formatVersion + 1}
		change(channel, setOp(recordField, record, 0))
		if _, err := check.Find(t.Context()); err == nil || !strings.Contains(err.Error(), "version") {
			t.Errorf("a record of a later version: %v", err)
		}
	})
}

// TestRestore empties the list, as a failover might. A round of the janitor and one of a broker
// restore it.
func TestRestore(t *testing.T) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		if !s.Shared {
			return
		}
		a, _ := start(t, s, nil)
		a.register(t, "amy")
		a.register(t, "bob")
		for key, err := range s.Pipe.Keys(t.Context(), s.Prefix+"ix_*") {
			if err := cmp.Or(err, s.Redis.Del(t.Context(), key).Err()); err != nil {
				t.Fatal(err)
			}
		}
		o := kit.CheckOptions{Index: s.Index("accounts"), States: s.Queue.(*queue.Redis)}
		if n, err := Restore(o).Do(t.Context()); n < 2 || err != nil { // a channel may come twice
			t.Errorf("restored %d accounts, %v", n, err)
		}
		if err := a.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found, err := Check(o).Find(t.Context()); len(found) > 0 || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
		if page := ok[Page](t)(a.List(t.Context(), Open, "", 10)); page.Total != 2 {
			t.Errorf("the list has %d accounts", page.Total)
		}
	})
}

// TestMetrics counts logins by result, and accounts by state.
func TestMetrics(t *testing.T) {
	a, _ := start(t, kittest.NewMemory(), nil)
	id := a.register(t, "amy").Account.ID
	a.register(t, "bob")
	s := ok[Session](t)(a.login(t, "amy", "secret of amy"))
	ok[Session](t)(a.Renew(t.Context(), s.Renewal, here))
	_, _ = a.login(t, "amy", "wrong")
	ok[Account](t)(a.Lock(t.Context(), id))
	_, _ = a.login(t, "amy", "secret of amy")
	registry := prometheus.NewRegistry()
	registry.MustRegister(a.Accounts.Extension().Metrics...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			line := family.GetName()
			for _, l := range m.GetLabel() {
				line += " " + l.GetValue()
			}
			got = append(got, fmt.Sprint(line, " ", m.GetCounter().GetValue()+m.GetGauge().GetValue()))
		}
	}
	want := []string{
		"switchboard_accounts deleted 0", "switchboard_accounts locked 1", "switchboard_accounts open 1",
		"switchboard_logins_total login locked 1", "switchboard_logins_total login ok 1", "switchboard_logins_total login unauthorized 1",
		"switchboard_logins_total register ok 2", "switchboard_logins_total renew ok 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
