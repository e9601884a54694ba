package leader

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"switchboard/internal/await"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

var (
	single  *redistest.Server
	cluster *redistest.Cluster
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &single, &cluster)) }

func TestScriptHeaders(t *testing.T) { redistest.CheckScripts(t, single.Client(t), luaFiles) }

// process is a process with the leases of two kinds of rounds. Its clock moves when the test does.
type process struct {
	*Leases
	t            *testing.T
	ahead        time.Duration
	rooms, holds *Lease
}

func newProcess(t *testing.T, client redis.UniversalClient) *process {
	p := &process{Leases: New(redispipe.New(client, redispipe.Options{}), t.Name()+":ix_r_", zerolog.Nop()), t: t}
	p.now = func() time.Time { return time.Now().Add(p.ahead) }
	p.rooms, p.holds = p.Add("rooms"), p.Add("holds")
	return p
}

// look looks at the leases, which must work.
func (p *process) look() {
	p.t.Helper()
	if err := p.Look(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// check checks for which kinds the process makes rounds.
func (p *process) check(what string, rooms, holds bool) {
	p.t.Helper()
	if p.rooms.IsDue() != rooms || p.holds.IsDue() != holds {
		p.t.Errorf("%s: rounds of rooms %v, of holds %v, want %v, %v", what, p.rooms.IsDue(), p.holds.IsDue(), rooms, holds)
	}
}

// each runs a test over a Redis and a Cluster, with two processes.
func each(t *testing.T, test func(t *testing.T, client redis.UniversalClient, a, b *process)) {
	for name, client := range map[string]redis.UniversalClient{"redis": single.Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) { test(t, client, newProcess(t, client), newProcess(t, client)) })
	}
}

// expire ends the leases of a process that was killed, as their time does.
func expire(t *testing.T, client redis.UniversalClient, leases ...*Lease) {
	for _, l := range leases {
		if err := client.PExpire(t.Context(), l.key, time.Millisecond).Err(); err != nil {
			t.Fatal(err)
		}
		await.True(t, "the lease has ended", func() bool { return client.Exists(t.Context(), l.key).Val() == 0 })
	}
}

// TestOneLeader: of two processes one makes the rounds, also after many looks, until it ends.
func TestOneLeader(t *testing.T) {
	each(t, func(t *testing.T, client redis.UniversalClient, a, b *process) {
		a.check("before a look", false, false)
		a.look()
		b.look()
		a.look()
		a.check("the first one", true, true)
		b.check("the second one", false, false)
		if ttl := client.PTTL(t.Context(), a.rooms.key).Val(); ttl <= 0 || ttl > length {
			t.Errorf("the lease ends in %v", ttl)
		}
		if err := a.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.check("ended", false, false)
		b.look()
		b.check("its successor", true, true)
		if err := a.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.look()
		b.check("after a late end of the first one", true, true)
	})
}

// TestLeaderKilled: when the lease of a process that does not renew it has ended, the process makes
// no rounds, and another one does.
func TestLeaderKilled(t *testing.T) {
	each(t, func(t *testing.T, client redis.UniversalClient, a, b *process) {
		a.look()
		b.look()
		a.ahead = length
		a.check("at the end of its lease", false, false)
		expire(t, client, a.rooms, a.holds)
		b.look()
		b.check("its successor", true, true)
		a.look()
		a.check("after a pause", false, false)
	})
}

// TestTwoLeaders: a failover loses a lease. Another process takes it, and the former leader ends at
// its next look.
func TestTwoLeaders(t *testing.T) {
	each(t, func(t *testing.T, client redis.UniversalClient, a, b *process) {
		a.look()
		if err := client.Del(t.Context(), a.rooms.key).Err(); err != nil {
			t.Fatal(err)
		}
		b.look()
		a.check("the former leader for a moment", true, true)
		b.check("the new leader", true, false)
		a.look()
		a.check("the former leader", false, true)
		b.look()
		b.check("the new leader later", true, false)
	})
}

// TestFailingRounds: a leader whose rounds fail gives the lease back, and leaves it to others for a
// while. A round that fails between others does not count.
func TestFailingRounds(t *testing.T) {
	each(t, func(t *testing.T, _ redis.UniversalClient, a, b *process) {
		broken := errors.New("broken")
		round := func(err error) {
			if got := a.rooms.Do(t.Context(), false, func(context.Context) error { return err }); !errors.Is(got, err) {
				t.Errorf("the round returned %v, want %v", got, err)
			}
		}
		a.look()
		for _, err := range []error{broken, broken, nil, broken, broken} {
			round(err)
		}
		a.check("after two in a row", true, true)
		round(broken)
		a.check("after three", false, true)
		select {
		case <-a.wake:
		default:
			t.Error("Run does not look at once")
		}
		a.look()
		a.check("in the pause", false, true)
		b.look()
		b.check("the other process", true, false)
		if err := b.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.ahead = pause
		a.look()
		a.check("after the pause", true, true)
	})
}

// TestHelp: while a leader cannot keep up, all processes make rounds.
func TestHelp(t *testing.T) {
	each(t, func(t *testing.T, _ redis.UniversalClient, a, b *process) {
		a.look()
		a.rooms.ended(slowRound+1, nil)
		a.look()
		b.look()
		b.check("while the leader asks for help", true, false)
		if b.rooms.Leads() {
			t.Error("a helper leads")
		}
		a.rooms.ended(slowRound, nil)
		a.look()
		b.look()
		b.check("afterwards", false, false)
	})
}

// TestBlind: a process that does not reach Redis makes no rounds at first, and rounds of its own
// later.
func TestBlind(t *testing.T) {
	server := redistest.Start(t)
	p := newProcess(t, server.Client(t))
	p.look()
	server.Kill()
	p.ahead = length
	if err := p.Look(t.Context()); err == nil {
		t.Error("a look at a Redis that has ended has no error")
	}
	p.check("soon after the end of Redis", false, false)
	p.ahead = blindAfter + time.Second
	p.check("later", true, true)
	if !p.rooms.Leads() || p.rooms.Held() {
		t.Errorf("it leads: %v, it has the lease: %v", p.rooms.Leads(), p.rooms.Held())
	}
}

// TestOwnWork: a process with work of its own makes a round without a lease. Without Leases, a
// process makes all rounds.
func TestOwnWork(t *testing.T) {
	p, rounds := newProcess(t, single.Client(t)), 0
	round := func(context.Context) error { rounds++; return nil }
	for _, l := range []*Lease{p.rooms, (*Leases)(nil).Add("rooms")} {
		for _, own := range []bool{false, true} {
			if err := l.Do(t.Context(), own, round); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rounds != 3 {
		t.Errorf("%d rounds, want 3", rounds)
	}
}

// TestRun: Run takes leases, and gives them back at its end.
func TestRun(t *testing.T) {
	client := single.Client(t)
	p := newProcess(t, client)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	await.True(t, "the process has the leases", func() bool { return p.rooms.Held() && p.holds.Held() })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := client.Exists(t.Context(), p.rooms.key, p.holds.key).Val(); n > 0 {
		t.Errorf("%d leases are left", n)
	}
}
