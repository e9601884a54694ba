package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/state"
	"switchboard/queue"
)

// lease is an update that sets a field for a time.
func lease(field string, ttl time.Duration) state.Update {
	op := set(field, "1")
	op.TTL = ttl
	return state.Update{Ops: []state.Op{op}}
}

// sweepers starts servers with a state subscriber of the channel room, and loads their views. They
// are in the order of the channel.
func sweepers(t *testing.T, n int) (st *store, servers []*server) {
	st = newStore(queue.Options{})
	for i := range n {
		s := newServer(t, st, fmt.Sprintf("s%d", i), 0, true)
		c, _ := s.subscribe("room")
		s.pages(c, 0, "")
		servers = append(servers, s)
	}
	ids := []string{"s0", "s1", "s2"}[:n]
	rank := func(s *server) int { return s.opts.Sweeps.rank("room", ids) }
	slices.SortFunc(servers, func(x, y *server) int { return rank(x) - rank(y) })
	return st, servers
}

// names returns the names of the fields that the store holds, also of those that are due.
func (s *store) names(t *testing.T) (names []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	page, err := s.Memory.ReadChannel(t.Context(), "room", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	m := state.NewMap(0)
	for _, message := range page.Messages {
		if e, err := state.DecodeEntry(message.Data); err == nil {
			m.Apply(message.ID, e)
		}
	}
	return m.Names()
}

func (s *store) sweptBy() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sweeps)
}

// TestOneServerSweeps checks that one server removes a field when it ends, and that all servers
// learn it.
func TestOneServerSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, servers := sweepers(t, 3)
		first := servers[0]
		first.push("room", lease("a", 10*time.Second))
		first.push("room", lease("b", 20*time.Second))
		first.push("room", sets("c"))
		for _, step := range []struct {
			wait   time.Duration
			fields []string
			sweeps int
		}{
			{10*time.Second - time.Millisecond, []string{"a", "b", "c"}, 0},
			{2 * sweepJitter, []string{"b", "c"}, 1},
			{9 * time.Second, []string{"b", "c"}, 1},
			{2 * time.Second, []string{"c"}, 2},
			{30 * time.Second, []string{"c"}, 2},
		} {
			time.Sleep(step.wait)
			synctest.Wait()
			if names := st.names(t); !slices.Equal(names, step.fields) {
				t.Errorf("%v later the fields are %q, want %q", step.wait, names, step.fields)
			}
			sweeps := st.sweptBy()
			if len(sweeps) != step.sweeps || slices.ContainsFunc(sweeps, func(id string) bool { return id != first.opts.Sweeps.Self() }) {
				t.Errorf("%v later %q have swept, want %d times %s", step.wait, sweeps, step.sweeps, first.opts.Sweeps.Self())
			}
		}
	})
}

// TestAnotherServerSweeps checks that the next server removes a field if the first one does not. It
// does so at once if the first one is known to be dead.
func TestAnotherServerSweeps(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("known %v", known), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, servers := sweepers(t, 3)
				servers[2].push("room", lease("a", 10*time.Second))
				servers[0].Close()
				servers[0].live.Store(!known)
				time.Sleep(10*time.Second + 2*sweepJitter)
				synctest.Wait()
				if swept := len(st.names(t)) == 0; swept != known {
					t.Fatalf("swept when the field ended: %v", swept)
				}
				time.Sleep(takeoverDelay)
				synctest.Wait()
				if names, by := st.names(t), st.sweptBy(); len(names) != 0 || !slices.Equal(by, []string{servers[1].opts.Sweeps.Self()}) {
					t.Errorf("the fields are %q, %q have swept", names, by)
				}
			})
		})
	}
}

// TestGraceEnds checks that a field of a client that has left is removed after its grace period.
func TestGraceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, servers := sweepers(t, 1)
		op := set("member", "1")
		op.Own, op.Grace = state.Own, 15*time.Second
		conn := state.Connection{Client: "tab", Generation: 7, Server: "s0"}
		servers[0].push("room", state.Update{Ops: []state.Op{op}, Client: conn.Client, Generation: 7, Server: "s0"})
		servers[0].pusher.StepStates(t.Context(), []queue.StateStep{{Channel: "room", Kind: queue.OwnerEnded, Conn: conn}})
		time.Sleep(14 * time.Second)
		synctest.Wait()
		if names := st.names(t); len(names) != 1 {
			t.Errorf("during the grace period the fields are %q", names)
		}
		time.Sleep(time.Second + 2*sweepJitter)
		synctest.Wait()
		if names := st.names(t); len(names) != 0 {
			t.Errorf("after the grace period the fields are %q", names)
		}
	})
}

// TestRenewedLease checks that a lease that was renewed is not swept at its former end.
func TestRenewedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, servers := sweepers(t, 1)
		servers[0].push("room", lease("a", 10*time.Second))
		time.Sleep(5 * time.Second)
		servers[0].push("room", state.Update{Ops: []state.Op{{Field: "a", Kind: state.Touch, TTL: 10 * time.Second}}})
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if by := st.sweptBy(); len(by) != 0 {
			t.Errorf("%d sweeps before the lease ended", len(by))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if by := st.sweptBy(); len(by) != 1 || len(st.names(t)) != 0 {
			t.Errorf("%d sweeps, want 1; the fields are %q", len(by), st.names(t))
		}
	})
}

// TestSweepIsRepeated checks that a failed sweep is repeated, but not in a tight loop. A sweep with
// changes that do not arrive is repeated once, and then the channel is read.
func TestSweepIsRepeated(t *testing.T) {
	for _, failure := range []string{"an error", "a lost hint"} {
		t.Run(failure, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, servers := sweepers(t, 1)
				servers[0].push("room", lease("a", 10*time.Second))
				if failure == "an error" {
					st.mu.Lock()
					st.fail = errors.New("unavailable")
					st.mu.Unlock()
				} else {
					st.setDropHints(true)
				}
				time.Sleep(20 * time.Second)
				synctest.Wait()
				before := len(st.sweptBy())
				if failure == "a lost hint" && before != 2 {
					t.Errorf("%d sweeps in ten seconds, want 2", before)
				} else if failure == "an error" && (before < 9 || before > 11) {
					t.Errorf("%d sweeps in ten seconds, want one each second", before)
				}
				st.mu.Lock()
				st.fail, st.dropHints = nil, false
				st.mu.Unlock()
				servers[0].compare()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := len(st.sweptBy()); n > before+1 || len(st.names(t)) != 0 {
					t.Errorf("%d more sweeps, want at most one; the fields are %q", n-before, st.names(t))
				}
			})
		})
	}
}

// TestSweepWithoutFields checks that a view that lost its fields to save memory still sweeps, and
// that an unused one does not.
func TestSweepWithoutFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, servers := sweepers(t, 1)
		s := servers[0]
		s.push("room", lease("a", 10*time.Second))
		s.views["room"].dropFields()
		s.push("room", lease("b", 20*time.Second))
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if names := st.names(t); !slices.Equal(names, []string{"b"}) {
			t.Errorf("the fields are %q, want b", names)
		}
		s.remove(s.views["room"])
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := len(st.sweptBy()); n != 1 {
			t.Errorf("%d sweeps, want 1: the view was removed", n)
		}
	})
}

// TestReplacedViewDoesNotSweep checks that a view stops its timer when another one replaces it.
func TestReplacedViewDoesNotSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, servers := sweepers(t, 1)
		s := servers[0]
		last := s.push("room", lease("a", 10*time.Second))
		s.views["room"].dropFields()
		s.pages(s.hub.Channel("room"), last.ID, "")
		if n := st.readCount(); n != 2 {
			t.Fatalf("%d reads, want 2", n)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if n := len(st.sweptBy()); n != 1 {
			t.Errorf("%d sweeps, want 1", n)
		}
	})
}

// TestDueFieldsAreShown checks that pages have a field whose end has passed: a message that touched
// it in time may be on its way, and would not have the value. Pages at a later id do not have it.
func TestDueFieldsAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, newStore(queue.Options{}), "a", 0, false)
		c, _ := s.subscribe("room")
		s.push("room", lease("a", 10*time.Second))
		s.push("room", sets("b"))
		began, from := time.Now(), int64(0)
		for _, want := range [][]string{{"a=1", "b=1"}, {"a=1", "b=1"}, {"a=1", "b=1"}, {"b=1"}} {
			if _, fields := s.pages(c, from, ""); !slices.Equal(fields, want) {
				t.Errorf("the fields are %q, want %q", fields, want)
			}
			if time.Sleep(9 * time.Second); time.Since(began) > 20*time.Second {
				from = s.push("room", sets("b")).ID
			}
		}
		if n := s.store.readCount(); n != 1 {
			t.Errorf("%d reads, want 1", n)
		}
	})
}

// TestRank checks that the live servers of a channel have different ranks, and that another server
// is the first one for some other channel.
func TestRank(t *testing.T) {
	ids := []string{"a", "b", "c", "dead"}
	firsts := make(map[string]int)
	for i := range 100 {
		channel := fmt.Sprint("room ", i)
		var ranks []int
		for _, id := range ids[:3] {
			w := Sweeps{Self: func() string { return id }, Live: func(server string) bool { return server != "dead" }}
			rank := w.rank(channel, ids)
			if ranks = append(ranks, rank); rank == 0 {
				firsts[id]++
			}
		}
		if slices.Sort(ranks); !slices.Equal(ranks, []int{0, 1, 2}) {
			t.Fatalf("channel %s: ranks %v", channel, ranks)
		}
	}
	for _, id := range ids[:3] {
		if firsts[id] < 15 {
			t.Errorf("server %s is the first one of %d of 100 channels", id, firsts[id])
		}
	}
}

// TestEndOfTheState checks that the servers learn of the end of a whole state, also if the janitor
// has removed the fields without a hint, and that they do not ask again and again.
func TestEndOfTheState(t *testing.T) {
	for name, silent := range map[string]bool{"the first server removes the fields": false, "the janitor does so": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, servers := sweepers(t, 3)
				u := sets("a")
				u.Keep = 2 * time.Hour
				servers[0].push("room", u)
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := len(st.sweptBy()); n != len(servers) {
					t.Errorf("%d sweeps in the first hour, want one of each server", n)
				}
				time.Sleep(time.Hour)
				if silent {
					st.StepStates(t.Context(), []queue.StateStep{{Channel: "room", Kind: queue.Sweep}})
				}
				time.Sleep(3 * takeoverDelay)
				synctest.Wait()
				for i, s := range servers {
					v := s.views["room"]
					v.mu.Lock()
					if n := v.fields.Len(); n != 0 {
						t.Errorf("server %d has %d fields after the end", i, n)
					}
					v.mu.Unlock()
				}
			})
		})
	}
}

// TestShorterKeep checks that a view learns of the end of the state when the configuration has
// become shorter, at the first change after that. The entry of a change does not have the end.
func TestShorterKeep(t *testing.T) {
	for name, before := range map[string]time.Duration{"it was kept forever": 0, "it was kept for longer": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, servers := sweepers(t, 1)
				s := servers[0]
				keep := before
				s.opts.Sweeps.Keep = func(string) time.Duration { return keep }
				push := func() {
					u := sets("a")
					u.Keep = keep
					s.push("room", u)
				}
				push()
				time.Sleep(time.Hour)
				synctest.Wait()
				swept := len(st.sweptBy())
				keep = time.Hour
				push()
				time.Sleep(time.Hour + sweepJitter)
				synctest.Wait()
				v := s.views["room"]
				v.mu.Lock()
				if names := slices.Collect(v.fields.Names()); len(names) != 0 {
					t.Errorf("the view has %v after the end of the state", names)
				}
				v.mu.Unlock()
				if n := len(st.sweptBy()) - swept; n != 1 {
					t.Errorf("%d sweeps in the second hour, want 1", n)
				}
			})
		})
	}
}
