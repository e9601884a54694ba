package presence

import (
	"slices"
	"testing"
	"testing/synctest"

	"switchboard/registry"
)

// TestAliasesChangedMeanwhile lets clients join and leave while new access rules are applied, after
// the members were read.
func TestAliasesChangedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAliasWorld(t, 0, 0, map[string]string{"amy": "1", "bob": "2", "cat": "3"}, "a")
		a := w.nodes["a"]
		a.join("amy/phone", "amy", 1)
		a.join("cat/tab", "cat", 2)
		w.settle()
		read := a.opts.Members
		a.opts.Members = func(channel string) []registry.Member {
			members := read(channel)
			if channel == testChannel {
				a.Leave(channel, "amy/phone", 1)
				a.JoinAs(channel, "name/bob", registry.Member{Client: "bob/tab", User: "bob", Generation: 3})
			}
			return members
		}
		a.AliasesChanged(testChannels)
		w.settle()
		a.opts.Members = read
		if got := w.stored(testChannel, "a"); !slices.Equal(got, []string{"2", "3"}) {
			t.Errorf("the roster has %v", got)
		}
		if c := a.aliases.channels[testChannel]; c.changing != 0 || c.touched != nil {
			t.Errorf("the change has not ended: %+v", c)
		}
	})
}

// TestHereOfRewrittenAlias checks that a value ends with its alias also if the roster is written
// again meanwhile.
func TestHereOfRewrittenAlias(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAliasWorld(t, 0, 0, map[string]string{"amy": "1"}, "a")
		a := w.nodes["a"]
		a.join("amy/phone", "amy", 1)
		w.settle()
		a.mustShow("amy/phone", 1, "x")
		w.settle()
		a.Resync(testChannels, nil)
		w.setAlias("amy", "")
		w.settle()
		h := a.lockHere(testChannel, false)
		defer h.mu.Unlock()
		if v := h.values["1"]; v.latest() != nil || len(h.holders) > 0 {
			t.Errorf("the value %q of the alias is left, with the holders %v", v.latest(), h.holders)
		}
	})
}

// TestAliasOfAnotherUser gives an alias to another user before the roster is written: it then has
// the new user, and the value of the old one has ended.
func TestAliasOfAnotherUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAliasWorld(t, 0, 0, map[string]string{"amy": "1"}, "a")
		a := w.nodes["a"]
		o := a.watch("x")
		a.join("amy/phone", "amy", 1)
		w.settle()
		a.mustShow("amy/phone", 1, "x")
		w.settle()
		w.mu.Lock()
		w.aliases["amy"], w.aliases["bob"] = "", "1"
		w.mu.Unlock()
		a.leave("amy/phone", 1)
		a.join("bob/tab", "bob", 2)
		w.settle()
		r, err := w.store.Roster(t.Context(), "a", testChannel)
		w.check(err)
		if len(r.Members) != 1 || r.Members[0].User != "bob" {
			t.Errorf("the roster has %+v", r.Members)
		}
		o.expect([]string{"1"})
		if len(o.here) > 0 {
			t.Errorf("the values %v of the old user are left", o.here)
		}
	})
}
