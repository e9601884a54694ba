package registry

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// clientsOf returns the clients of the members, with user and info.
func clientsOf(members []Member) []string {
	var list []string
	for _, m := range members {
		list = append(list, fmt.Sprintf("%s/%s%s", m.Client, m.User, m.Info))
	}
	return list
}

func change(t *testing.T, s store, server string, c PresenceChange) ChangeResult {
	t.Helper()
	o := s.ChangePresence(t.Context(), server, []RosterChange{{"news", c}})[0]
	ok(t, o.Err)
	return o.ChangeResult
}

func leaves(clients ...string) (members []Member) {
	for _, c := range clients {
		members = append(members, Member{Client: c})
	}
	return members
}

func rosterOf(t *testing.T, s store, server string) Roster {
	t.Helper()
	r, err := s.Roster(t.Context(), server, "news")
	ok(t, err)
	return r
}

func testRoster(t *testing.T, s store) {
	first := change(t, s, "a", PresenceChange{Join: []Member{{Client: "tab:1", User: "bob", Info: []byte(`{"x":1}`)}, {Client: "pad"}}})
	if first.Prev != 0 || first.Version <= 0 {
		t.Fatalf("the first change went from version %d to %d", first.Prev, first.Version)
	}
	change(t, s, "b", PresenceChange{Join: []Member{{Client: "phone", User: "eve"}}})
	before := rosterOf(t, s, "a")
	want(t, []string{"pad/", `tab:1/bob{"x":1}`})(clientsOf(before.Members), nil)
	if before.Version != first.Version || before.Members[0].Since.IsZero() {
		t.Errorf("roster %+v after version %d", before, first.Version)
	}

	second := change(t, s, "a", PresenceChange{Join: []Member{{Client: "pad", User: "ann"}, {Client: "tv"}}, Leave: leaves("tab:1", "unknown")})
	if second.Prev != first.Version || second.Version <= first.Version {
		t.Errorf("the second change went from version %d to %d, the first to %d", second.Prev, second.Version, first.Version)
	}
	after := rosterOf(t, s, "a")
	want(t, []string{"pad/ann", "tv/"})(clientsOf(after.Members), nil)
	if !after.Members[0].Since.Equal(before.Members[0].Since) {
		t.Error("a member that joins again has a new Since")
	}
	want(t, []time.Time{after.Members[0].Since, after.Members[1].Since})(second.Since, nil)
	want(t, []int{2, 1, 0})(s.RosterSizes(t.Context(), "news", []string{"a", "b", "c"}))
	names := []string{"tv", "nobody", "pad"}
	want(t, []bool{true, false, true})(s.RosterHas(t.Context(), "a", "news", names))
	want(t, []bool{false, false, false})(s.RosterHas(t.Context(), "c", "news", names))
	want(t, []bool{})(s.RosterHas(t.Context(), "a", "news", nil))
}

func testRosterGenerations(t *testing.T, s store) {
	member := func(user string, generation int64) []Member {
		return []Member{{Client: "pad", User: user, Generation: generation}}
	}
	change(t, s, "a", PresenceChange{Join: member("ann", 1<<52)})
	change(t, s, "a", PresenceChange{Join: member("bob", 1<<52-1)})
	change(t, s, "a", PresenceChange{Leave: member("", 1<<52-1)})
	want(t, []string{"pad/ann"})(clientsOf(rosterOf(t, s, "a").Members), nil)
	change(t, s, "a", PresenceChange{Join: member("eve", 1<<52+1)})
	change(t, s, "a", PresenceChange{Leave: member("", 1<<52)})
	want(t, []string{"pad/eve"})(clientsOf(rosterOf(t, s, "a").Members), nil)
	change(t, s, "a", PresenceChange{Leave: member("", 1<<52+1)})
	want(t, []string(nil))(clientsOf(rosterOf(t, s, "a").Members), nil)
}

func testEmptyRoster(t *testing.T, s store) {
	one := change(t, s, "a", PresenceChange{Join: []Member{{Client: "pad"}}})
	if last := change(t, s, "a", PresenceChange{Leave: leaves("pad")}); last.Prev != one.Version || last.Version != 0 {
		t.Errorf("the leave of the last member went from version %d to %d", last.Prev, last.Version)
	}
	if none := change(t, s, "a", PresenceChange{Leave: leaves("pad")}); none.Prev != 0 || none.Version != 0 {
		t.Errorf("a leave from an empty roster went from version %d to %d", none.Prev, none.Version)
	}
	if r := rosterOf(t, s, "a"); r.Version != 0 || len(r.Members) != 0 {
		t.Errorf("roster %+v, want an empty one", r)
	}
	want(t, []int{0})(s.RosterSizes(t.Context(), "news", []string{"a"}))
	if again := change(t, s, "a", PresenceChange{Join: []Member{{Client: "pad"}}}); again.Prev != 0 || again.Version <= one.Version {
		t.Errorf("the next join went from version %d to %d, the first to %d", again.Prev, again.Version, one.Version)
	}
}

func testWatchers(t *testing.T, s store) {
	ctx := t.Context()
	join := PresenceChange{Join: []Member{{Client: "pad"}}}
	want(t, []string(nil))(change(t, s, "a", join).Watchers, nil)
	ok(t, s.WatchPresence(ctx, "b", "news"))
	ok(t, s.WatchPresence(ctx, "a", "news"))
	ok(t, s.WatchPresence(ctx, "b", "news"))
	want(t, []string{"a", "b"})(change(t, s, "a", join).Watchers, nil)
	ok(t, s.UnwatchPresence(ctx, "a", "news"))
	ok(t, s.UnwatchPresence(ctx, "a", "news"))
	want(t, []string{"b"})(change(t, s, "a", PresenceChange{Leave: leaves("pad")}).Watchers, nil)
}

func testPresenceOfDeadServer(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.Join(ctx, Server{ID: "a"}))
	ok(t, s.BindChannel(ctx, "a", "news"))
	ok(t, s.BindChannel(ctx, "b", "news"))
	ok(t, s.WatchPresence(ctx, "a", "news"))
	change(t, s, "a", PresenceChange{Join: []Member{{Client: "pad"}}})
	change(t, s, "b", PresenceChange{Join: []Member{{Client: "tv"}}})
	declareDead(t, s, "a")
	fails(t, s.WatchPresence(ctx, "a", "news"), ErrDead)
	ok(t, s.UnbindChannel(ctx, "a", "news")) // as the janitor does
	want(t, []int{0, 1})(s.RosterSizes(ctx, "news", []string{"a", "b"}))
	want(t, []string(nil))(change(t, s, "b", PresenceChange{Join: []Member{{Client: "pad"}}}).Watchers, nil)
}

func testRosterPages(t *testing.T, s store) {
	ctx := t.Context()
	var all []string
	var c PresenceChange
	for i := range 700 {
		name := fmt.Sprintf("client-%03d", i)
		all = append(all, name)
		c.Join = append(c.Join, Member{Client: name})
	}
	change(t, s, "a", c)
	var found []string
	pages := 0
	for cursor := ""; ; pages++ {
		members, next, err := s.RosterPage(ctx, "a", "news", cursor, 50)
		ok(t, err)
		for _, m := range members {
			found = append(found, m.Client)
		}
		if next == "" {
			break
		}
		cursor = next
	}
	slices.Sort(found)
	want(t, all)(slices.Compact(found), nil)
	if pages < 2 {
		t.Errorf("700 members in %d pages of about 50", pages+1)
	}
}
