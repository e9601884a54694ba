package registry

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// live returns the ids of the live servers.
func live(t *testing.T, r contract) []string {
	t.Helper()
	servers, err := r.Servers(t.Context())
	ok(t, err)
	var ids []string
	for _, s := range servers {
		ids = append(ids, s.ID)
	}
	return ids
}

// declareDead ends the lease of a server and declares it dead.
func declareDead(t *testing.T, s store, server string) {
	t.Helper()
	s.loseLease(server)
	want(t, true)(s.DeclareDead(t.Context(), server))
}

func testDescription(t *testing.T, s store) {
	ctx := t.Context()
	a := Server{ID: "a", Host: "10.0.0.1:7071", Version: "1.2", StartedAt: time.UnixMilli(1_700_000_000_123).UTC(),
		Connections: 3, Users: 2, Channels: 1 << 40}
	ok(t, s.Join(ctx, Server{ID: "b"}))
	ok(t, s.Join(ctx, Server{ID: "a", Host: "10.0.0.9:1"}))
	ok(t, s.Beat(ctx, a))

	servers, err := s.Servers(ctx)
	ok(t, err)
	if len(servers) != 2 || servers[1].ID != "b" {
		t.Fatalf("servers %v", servers)
	}
	got, alive, err := s.Lease(ctx, "a")
	if err != nil || !alive || got != servers[0] {
		t.Fatalf("lease %v, %v, %v; Servers returns %v", got, alive, err, servers[0])
	}
	if age := time.Since(got.LastActive); age < -time.Minute || age > time.Minute {
		t.Errorf("last active at %v", got.LastActive)
	}
	got.LastActive, a.Can = time.Time{}, features
	if got != a {
		t.Errorf("got %+v, want %+v", got, a)
	}
}

// testNotifyStates checks that each notification changes the number of a live server, that a beat
// keeps it, that the next lease begins without one, and that it makes no lease.
func testNotifyStates(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.Join(ctx, Server{ID: "a"}))
	ok(t, s.Join(ctx, Server{ID: "b"}))
	number := func(id string) int64 {
		server, _, err := s.Lease(ctx, id)
		ok(t, err)
		return server.StatesChanged
	}
	seen := map[int64]bool{}
	notified := func(what string) {
		ok(t, s.NotifyStates(ctx, []string{"a", "gone"}))
		ok(t, s.Beat(ctx, Server{ID: "a"}))
		n := number("a")
		if n == 0 || seen[n] || number("b") != 0 {
			t.Errorf("%s: the numbers are %d, and %d without a notification; before %v", what, n, number("b"), seen)
		}
		seen[n] = true
	}
	notified("first")
	notified("second")
	s.loseLease("a")
	ok(t, s.NotifyStates(ctx, []string{"a"}))
	want(t, []string{"a", "b"})(s.Listed(ctx))
	if server, alive, err := s.Lease(ctx, "a"); server != (Server{}) || alive || err != nil {
		t.Errorf("lease %v, %v, %v", server, alive, err)
	}
	ok(t, s.Beat(ctx, Server{ID: "a"}))
	ok(t, s.Beat(ctx, Server{ID: "b"}))
	if n := number("a"); n != 0 {
		t.Errorf("a new lease has the number %d", n)
	}
	notified("in a new lease")
}

func testLostLease(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.Join(ctx, Server{ID: "a"}))
	ok(t, s.Join(ctx, Server{ID: "b"}))
	s.loseLease("a")
	ok(t, s.Beat(ctx, Server{ID: "b"}))
	want(t, []string{"a", "b"})(s.Listed(ctx))
	want(t, []string{"b"})(live(t, s), nil)
	if got, alive, err := s.Lease(ctx, "a"); got != (Server{}) || alive || err != nil {
		t.Fatalf("lease %v, %v, %v", got, alive, err)
	}
}

func testBeatAfterLostLease(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.Join(ctx, Server{ID: "a"}))
	s.loseLease("a")
	ok(t, s.Forget(ctx, "a")) // like a failover that lost everything
	ok(t, s.Beat(ctx, Server{ID: "a"}))
	want(t, []string{"a"})(live(t, s), nil)
	want(t, []string{"a"})(s.Listed(ctx))
}

func testLeave(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.Join(ctx, Server{ID: "a"}))
	ok(t, s.Join(ctx, Server{ID: "b"}))
	ok(t, s.BindChannel(ctx, "a", "news"))
	ok(t, s.HoldClients(ctx, "a", []string{"phone"}))
	ok(t, s.Leave(ctx, "a"))
	ok(t, s.Leave(ctx, "a"))
	want(t, []string{"b"})(s.Listed(ctx))
	want(t, []string(nil))(s.HeldChannels(ctx, "a", 10))
	want(t, []string(nil))(s.HeldClients(ctx, "a", 10))
	want(t, false)(s.DeclaredDead(ctx, "a"))
	_, alive, err := s.Lease(ctx, "a")
	want(t, false)(alive, err)
}

func testDeclareLiveServerDead(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.Join(ctx, Server{ID: "a"}))
	want(t, false)(s.DeclareDead(ctx, "a"))
	want(t, false)(s.DeclaredDead(ctx, "a"))
	ok(t, s.BindChannel(ctx, "a", "news"))
}

func testDeadServer(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.Join(ctx, Server{ID: "a"}))
	declareDead(t, s, "a")
	want(t, true)(s.DeclareDead(ctx, "a"))
	want(t, true)(s.DeclaredDead(ctx, "a"))
	ok(t, s.Forget(ctx, "a"))

	fails(t, s.Beat(ctx, Server{ID: "a"}), ErrDead)
	fails(t, s.Join(ctx, Server{ID: "a"}), ErrDead)
	fails(t, s.BindChannel(ctx, "a", "news"), ErrDead)
	fails(t, s.HoldClients(ctx, "a", []string{"phone"}), ErrDead)
	want(t, []string(nil))(s.Listed(ctx))
	want(t, []string(nil))(s.ChannelServers(ctx, "news"))
	want(t, []string(nil))(s.HeldChannels(ctx, "a", 10))
	want(t, []string(nil))(s.HeldClients(ctx, "a", 10))
}

func testTombstoneEnds(t *testing.T, s store) {
	ctx := t.Context()
	want(t, true)(s.DeclareDead(ctx, "a"))
	s.loseTombstone("a")
	want(t, false)(s.DeclaredDead(ctx, "a"))
	ok(t, s.Join(ctx, Server{ID: "a"}))
}

func testCleaning(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.Join(ctx, Server{ID: "a"}))
	for _, channel := range []string{"x", "y", "z"} {
		ok(t, s.BindChannel(ctx, "a", channel))
	}
	ok(t, s.BindChannel(ctx, "b", "y"))
	ok(t, s.HoldClients(ctx, "a", []string{"phone"}))
	declareDead(t, s, "a")

	rounds := 0
	for ; ; rounds++ {
		channels, err := s.HeldChannels(ctx, "a", 2)
		ok(t, err)
		if len(channels) == 0 {
			break
		}
		for _, channel := range channels {
			ok(t, s.UnbindChannel(ctx, "a", channel))
		}
	}
	if rounds != 2 {
		t.Errorf("three channels in chunks of two took %d rounds", rounds)
	}
	want(t, []string{"phone"})(s.HeldClients(ctx, "a", 2))
	ok(t, s.Forget(ctx, "a"))
	want(t, []string(nil))(s.HeldClients(ctx, "a", 2))
	want(t, []string(nil))(s.Listed(ctx))
	want(t, []string{"y"})(allChannels(t, s, "", 10), nil)
	want(t, []string{"b"})(s.ChannelServers(ctx, "y"))
	want(t, true)(s.DeclaredDead(ctx, "a"))
}

func testHeldClients(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.HoldClients(ctx, "a", []string{"phone"}))
	ok(t, s.HoldClients(ctx, "a", []string{"phone"}))
	ok(t, s.HoldClients(ctx, "a", []string{"laptop"}))
	ok(t, s.HoldClients(ctx, "b", []string{"tv"}))
	want(t, []string{"laptop", "phone"})(s.HeldClients(ctx, "a", 10))
	ok(t, s.DropClient(ctx, "a", "phone"))
	ok(t, s.DropClient(ctx, "a", "phone"))
	want(t, []string{"laptop"})(s.HeldClients(ctx, "a", 10))
	want(t, []string{"tv"})(s.HeldClients(ctx, "b", 10))
}

func testClientPages(t *testing.T, s store) {
	ctx := t.Context()
	all := map[string]bool{}
	var clients []string
	for i := range 700 { // more than Redis keeps in one small object, which is one page
		c := fmt.Sprintf("user-%d/phone", i)
		all[c] = true
		clients = append(clients, c)
	}
	ok(t, s.HoldClients(ctx, "a", clients))
	ok(t, s.HoldClients(ctx, "b", []string{"other/phone"}))
	pages, cursor := 0, ""
	for {
		page, next, err := s.ClientPage(ctx, "a", cursor, 100)
		ok(t, err)
		for _, c := range page {
			if c == "other/phone" {
				t.Error("the page has a client of another server")
			}
			delete(all, c)
		}
		pages++
		if cursor = next; cursor == "" {
			break
		}
	}
	if len(all) > 0 || pages < 2 {
		t.Errorf("%d pages do not have %d clients", pages, len(all))
	}
	page, next, err := s.ClientPage(ctx, "nobody", "", 10)
	if len(page) != 0 || next != "" || err != nil {
		t.Errorf("an unknown server has %v, %q, %v", page, next, err)
	}
}

// testDied checks that each dead server is listed once, the latest first, and no server that left.
func testDied(t *testing.T, s store) {
	ctx := t.Context()
	want(t, []Death(nil))(s.Died(ctx))
	for _, id := range []string{"a", "b", "c"} {
		ok(t, s.Join(ctx, Server{ID: id}))
	}
	ok(t, s.Leave(ctx, "c"))
	declareDead(t, s, "a")
	want(t, []Death(nil))(s.Died(ctx))
	ok(t, s.Forget(ctx, "a"))
	before, err := s.Died(ctx)
	ok(t, err)
	declareDead(t, s, "b")
	ok(t, s.Forget(ctx, "b"))
	ok(t, s.Forget(ctx, "a")) // by another janitor
	list, err := s.Died(ctx)
	ok(t, err)
	if len(list) != 2 || list[0].At.Before(list[1].At) || !slices.Contains(list, before[0]) || list[0].At.Year() < 2026 {
		t.Errorf("%v, before %v", list, before)
	}
}
