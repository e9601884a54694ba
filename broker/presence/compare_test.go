package presence

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/registry"
)

// compareWorld is a world in which server a watches, and the others change the store without hints.
type compareWorld struct {
	*world
	a          *node
	generation int64
}

// newCompareWorld returns a world in which a watches testChannel, 200 other channels and n users.
// b and c hold none of these channels but testChannels.
func newCompareWorld(t *testing.T, n int) *compareWorld {
	w := newWorld(t, 0, 0, "a", "b", "c")
	c := &compareWorld{world: w, a: w.nodes["a"]}
	for i := range 200 {
		_, err := c.a.Watch(t.Context(), fmt.Sprint("channel-", i))
		w.check(err)
	}
	for i := range n {
		_, err := c.a.WatchUser(t.Context(), fmt.Sprint("user-", i))
		w.check(err)
	}
	w.tickSeconds(initialReads + 1)
	clear(c.a.reads)
	return c
}

// online connects a client of a user to a server, without a hint.
func (c *compareWorld) online(server, user string) {
	c.generation++
	client := user + "/phone"
	c.check(c.store.HoldClients(c.t.Context(), server, []string{client}))
	b := registry.Binding{Client: client, Server: server, Generation: c.generation}
	c.check(c.store.BindUsers(c.t.Context(), []registry.UserBinding{{User: user, Binding: b}})[0])
}

// offline disconnects the client that online has connected to a server, without a hint.
func (c *compareWorld) offline(server, user string) {
	client := user + "/phone"
	_, err := c.store.ReleaseUser(c.t.Context(), user, client, c.generation)
	c.check(err)
	c.check(c.store.DropClient(c.t.Context(), server, client))
}

// change changes a roster without a hint.
func (c *compareWorld) change(server, channel string, change registry.PresenceChange) {
	c.check(c.store.BindChannel(c.t.Context(), server, channel))
	c.check(c.store.ChangePresence(c.t.Context(), server, []registry.RosterChange{{Channel: channel, PresenceChange: change}})[0].Err)
}

// expectReads checks what a has read since the last call.
func (c *compareWorld) expectReads(after string, want map[string]int) {
	c.t.Helper()
	c.waitASecond()
	if !maps.Equal(c.a.reads, want) {
		c.t.Errorf("%s: a read %v, want %v", after, c.a.reads, want)
	}
	clear(c.a.reads)
}

// compare compares a with servers.
func (c *compareWorld) compare(servers ...string) {
	c.t.Helper()
	c.check(c.a.Compare(c.t.Context(), servers, 0))
	c.waitASecond()
}

// TestCompareServersWithoutClients checks what a comparison, a start and an end of a server cost
// that holds nothing: two commands, the HeldCounts, whatever is watched.
func TestCompareServersWithoutClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompareWorld(t, 100)
		for i := range 100 {
			c.online("c", fmt.Sprint("user-", i))
			c.change("c", fmt.Sprint("channel-", i), registry.PresenceChange{Join: []registry.Member{{Client: "ann/phone"}}})
		}
		c.compare("c")
		clear(c.a.reads)
		c.compare("d") // not live
		c.expectReads("a comparison with an unknown server", map[string]int{})
		for range 2 {
			c.live["d"] = true
			c.setLive()
			c.expectReads("the start", map[string]int{"HeldCounts": 1})
			c.compare("d")
			c.expectReads("a comparison", map[string]int{"HeldCounts": 1})
			delete(c.live, "d")
			c.setLive()
			c.expectReads("the end", map[string]int{})
		}
	})
}

// TestCompareRosters checks that a comparison finds each change of a roster without a hint, and
// reads only these rosters.
func TestCompareRosters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompareWorld(t, 0)
		ann := []registry.Member{{Client: "ann/phone"}}
		members := func(channel string) int { return len(c.a.view(channel).members.list()) }
		for _, step := range []struct {
			name   string
			change registry.PresenceChange
			want   int
			reads  map[string]int
		}{
			{"a first member", registry.PresenceChange{Join: ann}, 1, map[string]int{"HeldCounts": 1, "HoldsChannels": 200, "RosterVersions": 1, "Roster": 1}},
			{"one more member", registry.PresenceChange{Join: []registry.Member{{Client: "ben/phone"}}}, 2, map[string]int{"HeldCounts": 1, "HoldsChannels": 199, "RosterVersions": 1, "Roster": 1}},
			{"the last members leave", registry.PresenceChange{Leave: []registry.Member{{Client: "ann/phone"}, {Client: "ben/phone"}}}, 0, map[string]int{"HeldCounts": 1, "HoldsChannels": 199, "RosterVersions": 1, "Roster": 1}},
		} {
			c.change("b", "channel-7", step.change)
			c.compare("c")
			if n := members("channel-7"); n == step.want {
				t.Errorf("%s: a comparison with c has read the roster of b", step.name)
			}
			clear(c.a.reads)
			c.compare("b")
			c.expectReads(step.name, step.reads)
			if n := members("channel-7"); n != step.want {
				t.Errorf("%s: %d members, want %d", step.name, n, step.want)
			}
		}
	})
}

// TestCompareUsers checks that a comparison finds each change of a user without a hint, and reads
// only these users.
func TestCompareUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompareWorld(t, 100)
		online := func(want bool) {
			t.Helper()
			v := c.a.userView("user-7")
			if v.mu.Lock(); v.online != want {
				t.Errorf("the user is online: %t, want %t", v.online, want)
			}
			v.mu.Unlock()
		}
		reads := func(clients, compared, read int) map[string]int {
			m := map[string]int{"HeldCounts": 1, "HoldsChannels": 200, "ClientPage": clients, "Users": compared, "User": read}
			maps.DeleteFunc(m, func(_ string, n int) bool { return n == 0 })
			return m
		}
		c.online("b", "user-7")
		c.online("b", "user-unwatched")
		c.compare("b")
		c.expectReads("the user comes online", reads(1, 1, 1))
		online(true)
		c.compare("b")
		c.expectReads("again", reads(1, 1, 0))

		// Without the clients that b holds now, only the view knows that the user was there.
		c.check(c.store.DropClient(t.Context(), "b", "user-7/phone"))
		c.check(c.store.DropClient(t.Context(), "b", "user-unwatched/phone"))
		c.online("c", "user-7")
		c.compare("b")
		c.expectReads("the user moves", reads(0, 1, 1))
		delete(c.live, "b")
		c.setLive()
		c.expectReads("the end of the former server", map[string]int{})
		online(true)

		for i := range clientsPerUser * 100 {
			c.check(c.store.HoldClients(t.Context(), "c", []string{fmt.Sprint("other-", i, "/phone")}))
		}
		c.offline("c", "user-7")
		c.compare("c")
		c.expectReads("a server with few clients", reads(1, 1, 1))
		c.online("c", "user-7")
		c.compare("c")
		c.expectReads("a server with many clients", reads(0, 100, 1))
		online(true)
		delete(c.live, "c")
		c.setLive()
		c.expectReads("the end of a server", map[string]int{"User": 1})
		c.tickSeconds(10)
		online(false)
	})
}

// TestStartedServerHasUsers checks that users are online whose server has bound them before this
// server knew its lease.
func TestStartedServerHasUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompareWorld(t, 2)
		c.online("d", "user-0")
		c.a.UserChanged("user-0") // its view names d
		c.online("d", "user-1")
		c.waitASecond()
		c.live["d"] = true
		c.setLive()
		c.waitASecond()
		for _, user := range []string{"user-0", "user-1"} {
			if v := c.a.userView(user); !v.online {
				t.Errorf("%s is offline", user)
			}
		}
	})
}

// TestCompareDuringRead checks that a read that has begun before a comparison does not count: what
// it has read may be older than the lost hint.
func TestCompareDuringRead(t *testing.T) {
	ann, ben := registry.Member{Client: "ann/phone"}, registry.Member{Client: "ben/phone"}
	for _, step := range []struct {
		name, method  string
		begin, change func(c *compareWorld)
	}{
		{"of a user", "User", func(c *compareWorld) {
			c.online("b", "user-0")
			c.a.UserChanged("user-0")
		}, func(c *compareWorld) { c.offline("b", "user-0") }},
		{"of a roster", "Roster", func(c *compareWorld) {
			c.change("b", "channel-7", registry.PresenceChange{Join: []registry.Member{ann}})
			v := c.a.view("channel-7")
			v.mu.Lock()
			defer v.mu.Unlock()
			v.markDirtyLocked("b")
		}, func(c *compareWorld) {
			c.change("b", "channel-7", registry.PresenceChange{Join: []registry.Member{ben}, Leave: []registry.Member{ann}})
		}},
	} {
		t.Run(step.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCompareWorld(t, 1)
				until := make(chan struct{})
				c.a.setHoldUp(step.method, until)
				step.begin(c)
				c.waitASecond() // the read has its answer, which is not applied yet
				step.change(c)
				c.a.setHoldUp(step.method, nil)
				c.compare("b")
				close(until)
				c.waitASecond()
				if v := c.a.userView("user-0"); len(v.servers) != 0 {
					t.Errorf("the user is on %v, want none", v.servers)
				}
				if members := c.a.view("channel-7").members.list(); step.method == "Roster" && (len(members) != 1 || members[0].Client != ben.Client) {
					t.Errorf("the members are %v", members)
				}
			})
		})
	}
}

// TestCompareAgain checks that a comparison is repeated that has failed, with this server only.
func TestCompareAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompareWorld(t, 0)
		c.change("b", "channel-0", registry.PresenceChange{Join: []registry.Member{{Client: "ann/phone"}}})
		c.a.failCalls(1, false)
		if err := c.a.Compare(t.Context(), []string{"b", "c"}, 0); err == nil {
			t.Fatal("the comparison did not fail")
		}
		c.waitASecond()
		clear(c.a.reads)
		c.tickSeconds(4)
		c.expectReads("a failure", map[string]int{"HeldCounts": 1, "HoldsChannels": 200, "RosterVersions": 1, "Roster": 1})
		if n := len(c.a.view("channel-0").members.list()); n != 1 {
			t.Errorf("%d members", n)
		}
	})
}

// TestComparePace checks that the calls are spread over the pace.
func TestComparePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompareWorld(t, 1000)
		for i := range 1000 {
			c.online("b", fmt.Sprint("user-", i))
		}
		began := time.Now()
		c.check(c.a.Compare(t.Context(), nil, 300*time.Millisecond))
		if took := time.Since(began); took < 150*time.Millisecond || took > 320*time.Millisecond {
			t.Errorf("the comparison took %s", took)
		}
		c.waitASecond()
	})
}

// TestCompareParts checks that a part of the store that does not answer delays the comparison of no
// other one. Names with an odd last digit are in the second part, and so is server c.
func TestCompareParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompareWorld(t, 10)
		c.a.opts.Master = func(name string) int { return int(name[len(name)-1]) & 1 }
		for _, n := range []string{"7", "8"} {
			c.change("b", "channel-"+n, registry.PresenceChange{Join: []registry.Member{{Client: "ann/phone"}}})
			c.online("b", "user-"+n)
		}
		until := make(chan struct{})
		for _, name := range []string{"c", "channel-7", "user-7"} {
			c.a.setHoldUp(name, until)
		}
		done := make(chan error, 1)
		go func() { done <- c.a.Compare(t.Context(), []string{"b", "c"}, 0) }()
		expect := func(what string, channel, user string, want bool) {
			t.Helper()
			c.waitASecond()
			if found := len(c.a.view(channel).members.list()) == 1; found != want {
				t.Errorf("%s: the roster of %s is read: %t", what, channel, found)
			}
			if found := c.a.userView(user).online; found != want {
				t.Errorf("%s: user %s is online: %t", what, user, found)
			}
		}
		expect("one part hangs", "channel-8", "user-8", true)
		expect("the part that hangs", "channel-7", "user-7", false)
		close(until)
		expect("the part is back", "channel-7", "user-7", true)
		c.check(<-done)
	})
}
