package presence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// newAliasWorld returns a world whose channels show aliases.
func newAliasWorld(t *testing.T, seed uint64, large int, aliases map[string]string, names ...string) *world {
	w := newWorld(t, seed, large, names...)
	w.showAliases(aliases)
	return w
}

// showAliases makes the channels show aliases, or clients if they are nil.
func (w *world) showAliases(aliases map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.aliases = aliases
}

// aliasField implements Options.AliasField.
func (w *world) aliasField(_, user string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.aliases == nil {
		return ""
	}
	return "name/" + user
}

// readAliases implements Options.Fields. Some of the reads fail if the server has failures.
func (n *node) readAliases(_ context.Context, reads []FieldRead) {
	before, after := faultyStore{n.w.store, n}.nextFailure()
	n.w.delay()
	for i := range reads {
		if r := &reads[i]; before || after && i == 0 {
			r.Err = errUnavailable
		} else {
			for _, field := range r.Fields {
				n.w.mu.Lock()
				r.Texts = append(r.Texts, n.w.aliases[strings.TrimPrefix(field, "name/")])
				n.w.mu.Unlock()
			}
		}
	}
	n.w.delay()
}

// setAlias changes the alias of a user, "" to end it, and notifies the servers.
func (w *world) setAlias(user, alias string) {
	w.mu.Lock()
	w.aliases[user] = alias
	w.mu.Unlock()
	e := &state.Entry{Del: []string{"name/" + user}}
	if alias != "" {
		e = &state.Entry{Set: map[string]json.RawMessage{"name/" + user: jsonOf(alias)}}
	}
	for _, n := range w.nodes {
		for _, channel := range testChannels {
			n.FieldsChanged(channel, e)
		}
	}
}

// liveAliases returns the aliases of the clients of live servers.
func (w *world) liveAliases() []string {
	found := map[string]bool{}
	for _, n := range w.nodes {
		for _, m := range n.members {
			if alias := w.aliases[m.User]; w.live[n.id] && alias != "" {
				found[alias] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// wantPages compares the pages that a server returns with the aliases. Each alias must be in one
// page, and clients must not see a user.
func (w *world) wantPages(n *node, aliases []string) {
	w.t.Helper()
	var got []string
	for cursor, first := "", true; first || cursor != ""; first = false {
		p, err := n.Page(w.t.Context(), testChannel, cursor, 1, 0)
		w.check(err)
		for _, m := range p.WireMembers() {
			if got = append(got, m.Client); m.User != "" || m.Info != nil {
				w.t.Errorf("a client sees the member %+v", m)
			}
		}
		for _, m := range p.BackendMembers() {
			if w.aliases[m.User] != m.Client {
				w.t.Errorf("the backend sees the member %+v", m)
			}
		}
		if p.Count != len(aliases) || cursor == "" && p.Users != len(aliases) {
			w.t.Errorf("a page counts %d members and %d users, want %v", p.Count, p.Users, aliases)
		}
		cursor = p.Next
	}
	if slices.Sort(got); !slices.Equal(got, aliases) {
		w.t.Errorf("the pages have %v, want %v", got, aliases)
	}
}

// TestRandomAliases lets users with several devices come and go on three servers, and get and lose
// aliases, while hints are lost, the store fails and servers die. Each alias must be a member once,
// as long as it has a device, for watchers and in pages.
func TestRandomAliases(t *testing.T) {
	for seed := range uint64(150) {
		for _, large := range []int{1000, 3} {
			t.Run(fmt.Sprintf("seed %d, large %d", seed, large), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { runRandomAliases(t, seed, large) })
			})
		}
	}
}

func runRandomAliases(t *testing.T, seed uint64, large int) {
	names := []string{"a", "b", "c"}
	w := newAliasWorld(t, seed, large, map[string]string{"user-0": "0"}, names...)
	location, generation, next := map[string]string{}, map[string]int64{}, int64(0)
	watchers := []*testWatcher{w.nodes["a"].watch("x"), w.nodes["b"].watch("yy")}
	for range 60 {
		n := w.nodes[names[w.intn(3)]]
		user := fmt.Sprint("user-", w.intn(4))
		client := fmt.Sprint(user, "/", w.intn(3))
		switch w.intn(14) {
		case 0, 1, 2, 3: // connect, or move
			if !w.live[n.id] {
				break
			}
			next++
			before, old := location[client], generation[client]
			n.join(client, user, next)
			location[client], generation[client] = n.id, next
			if before != "" {
				w.nodes[before].leave(client, old)
			}
		case 4, 5: // disconnect
			if at := location[client]; at != "" {
				w.nodes[at].leave(client, generation[client])
				delete(location, client)
			}
		case 6, 7:
			w.setAlias(user, strings.TrimPrefix(user, "user-"))
		case 8:
			w.setAlias(user, "")
		case 9:
			n.failCalls(1+w.intn(3), w.intn(2) == 0)
		case 10:
			w.loseHints(w.intn(2) == 0)
		case 11: // the lease ends, or comes back
			if n.id != "a" {
				w.live[n.id] = !w.live[n.id]
				w.setLive()
			}
		case 12:
			n.Resync([]string{testChannel}, nil)
		case 13:
			watchers[w.intn(2)].setBacklogged(w.intn(2) == 0)
		}
	}
	w.loseHints(false)
	for _, n := range w.nodes {
		n.failCalls(0, false)
	}
	w.settle()
	for _, o := range watchers {
		if w.live[o.view.p.opts.ServerID()] {
			o.setBacklogged(false)
			o.expect(w.liveAliases())
		}
	}
	for _, n := range w.nodes {
		w.wantPages(n, w.liveAliases())
	}
}

// TestOwnAlias checks that a watcher receives the join and the leave of its own alias, and not the
// values of its other devices.
func TestOwnAlias(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAliasWorld(t, 0, 0, map[string]string{"amy": "1", "bob": "2"}, "a", "b")
		a, b := w.nodes["a"], w.nodes["b"]
		amy, bob := a.watch("amy/phone"), a.watch("bob/tab")
		a.join("amy/phone", "amy", 1)
		a.join("bob/tab", "bob", 2)
		b.join("amy/pad", "amy", 3)
		w.settle()
		amy.expect([]string{"1", "2"})
		bob.expect([]string{"1", "2"})
		b.mustShow("amy/pad", 3, "x")
		w.settle()
		if amy.values != 0 || bob.here["1"] != "x" {
			t.Errorf("amy received %d values, and bob %v", amy.values, bob.here)
		}
		b.leave("amy/pad", 3)
		w.settle()
		bob.expect([]string{"1", "2"})
		if len(bob.here) > 0 {
			t.Errorf("bob has the values %v of a device that has left", bob.here)
		}
		a.leave("amy/phone", 1)
		w.settle()
		amy.expect([]string{"2"})
	})
}

// TestHereOfAlias checks that the devices of a user share one value, and that a value ends with the
// device that has set it, or with the alias.
func TestHereOfAlias(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAliasWorld(t, 0, 0, map[string]string{"amy": "1"}, "a", "b")
		a, b := w.nodes["a"], w.nodes["b"]
		o := b.watch("x")
		a.join("amy/phone", "amy", 1)
		a.join("amy/pad", "amy", 2)
		b.join("amy/tv", "amy", 3)
		a.join("eve/tab", "eve", 4)
		w.settle()
		want := func(value string) {
			t.Helper()
			if w.settle(); o.here["1"] != value || len(o.here) > 1 {
				t.Errorf("the watcher has the values %v, want %q", o.here, value)
			}
		}
		a.mustShow("amy/pad", 2, "pad")
		want("pad")
		a.mustShow("amy/phone", 1, "phone")
		want("phone")
		a.leave("amy/pad", 2)
		want("phone")
		b.mustShow("amy/tv", 3, "tv")
		want("tv")
		a.leave("amy/phone", 1)
		want("tv")
		if err, _ := errors.AsType[*wire.Error](a.show("eve/tab", 4, "boo")); err == nil || err.Code != wire.Forbidden {
			t.Errorf("a value of a client without an alias: %v", err)
		}
		w.setAlias("amy", "")
		want("")
		w.setAlias("amy", "1")
		want("")
		b.mustShow("amy/tv", 3, "again")
		want("again")
	})
}

// TestAliasesChanged checks that a channel that begins to show aliases shows no client ids from
// then on, also those of a server with the old rules, and that it shows them again afterwards.
func TestAliasesChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		a, b := w.nodes["a"], w.nodes["b"]
		o := a.watch("x")
		a.join("amy/phone", "amy", 1)
		b.join("bob/tab", "bob", 2)
		w.settle()
		o.expect([]string{"amy/phone", "bob/tab"})
		w.showAliases(map[string]string{"amy": "1", "bob": "2"})
		a.AliasesChanged(testChannels)
		w.settle()
		o.expect([]string{"1"})
		w.wantPages(a, []string{"1"})
		b.AliasesChanged(testChannels)
		w.settle()
		o.expect([]string{"1", "2"})
		w.wantPages(a, []string{"1", "2"})
		w.showAliases(nil)
		for _, n := range w.nodes {
			n.AliasesChanged(testChannels)
		}
		w.settle()
		o.expect([]string{"amy/phone", "bob/tab"})
		if a.aliases.count.Load() != 0 {
			t.Errorf("%d channels are left in the table", a.aliases.count.Load())
		}
	})
}

// TestManyAliases checks that a server with more users than one read or one change takes shows all
// of them.
func TestManyAliases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aliases := map[string]string{}
		for i := range 3*maxChange + 1 {
			aliases[fmt.Sprint("user-", i)] = fmt.Sprint(i)
		}
		w := newAliasWorld(t, 0, 10_000, aliases, "a")
		a := w.nodes["a"]
		for i := range len(aliases) {
			user := fmt.Sprint("user-", i)
			a.join(user+"/phone", user, int64(i+1))
		}
		w.settle()
		if got := w.stored(testChannel, "a"); !slices.Equal(got, w.liveAliases()) {
			t.Errorf("the roster has %d aliases, want %d", len(got), len(aliases))
		}
	})
}

// TestTableIsEmpty checks that nothing stays of clients that have left.
func TestTableIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAliasWorld(t, 0, 0, map[string]string{"amy": "1"}, "a")
		a := w.nodes["a"]
		a.join("amy/phone", "amy", 1)
		a.join("eve/tab", "eve", 2)
		w.settle()
		if got := w.stored(testChannel, "a"); !slices.Equal(got, []string{"1"}) {
			t.Errorf("the roster has %v", got)
		}
		a.leave("amy/phone", 1)
		a.leave("eve/tab", 2)
		w.settle()
		r, err := w.store.Roster(t.Context(), "a", testChannel)
		w.check(err)
		if n := a.aliases.count.Load(); n != 0 || r.Version != (registry.Roster{}).Version {
			t.Errorf("%d channels are left in the table, and the roster is %+v", n, r)
		}
	})
}
