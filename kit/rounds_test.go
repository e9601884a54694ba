package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"switchboard/internal/await"
	"switchboard/internal/leader"
	"switchboard/internal/redispipe"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
)

func TestMain(m *testing.M) { os.Exit(kittest.Main(m)) }

// roundsBroker is the rounds of a broker.
type roundsBroker struct {
	leases *leader.Leases
	Rounds
	took []string // the documents that it was handed
}

func newRoundsBroker(client redis.UniversalClient, prefix string) *roundsBroker {
	pipe := redispipe.New(client, redispipe.Options{})
	b := &roundsBroker{leases: leader.New(pipe, prefix+"ix_r_", zerolog.Nop())}
	b.Rounds = Rounds{
		Index: index.NewRedis(pipe, prefix, "docs"), Lease: b.leases.Add("docs"), All: "all",
		Batch: 10, SweepLeast: time.Second, SweepRate: 100,
	}
	return b
}

// round makes a round if it is due. done ends the tasks that the broker is handed.
func (b *roundsBroker) round(ctx context.Context, done func(tasks []index.Task) error) error {
	return b.Lease.Do(ctx, false, func(ctx context.Context) error {
		return b.Take(ctx, func(tasks []index.Task, _ time.Duration) error {
			for _, t := range tasks {
				b.took = append(b.took, t.ID)
			}
			return done(tasks)
		})
	})
}

// finish ends tasks.
func (b *roundsBroker) finish(ctx context.Context) func([]index.Task) error {
	return func(tasks []index.Task) error {
		next := map[index.Task]time.Duration{}
		for _, t := range tasks {
			next[t] = 0
		}
		return b.Index.Done(ctx, next)
	}
}

func eachStore(t *testing.T, test func(t *testing.T, client redis.UniversalClient, prefix string, a, b *roundsBroker)) {
	for name, client := range map[string]redis.UniversalClient{"redis": kittest.Redis.Client(t), "cluster": kittest.Cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			prefix := t.Name() + ":"
			a, b := newRoundsBroker(client, prefix), newRoundsBroker(client, prefix)
			if err := errors.Join(a.leases.Look(t.Context()), b.leases.Look(t.Context())); err != nil {
				t.Fatal(err)
			}
			test(t, client, prefix, a, b)
		})
	}
}

// documents makes n documents due.
func documents(t *testing.T, list index.Index, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("d%03d", i))
	}
	if err := list.Schedule(t.Context(), 0, ids...); err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestLeaderKilled: one of two brokers makes the rounds. It is killed during one, and the other
// broker makes the round again.
func TestLeaderKilled(t *testing.T) {
	eachStore(t, func(t *testing.T, client redis.UniversalClient, prefix string, a, b *roundsBroker) {
		ctx, killed := t.Context(), errors.New("killed")
		ids := documents(t, a.Index, 5)
		if err := b.round(ctx, b.finish(ctx)); err != nil || len(b.took) > 0 {
			t.Errorf("a broker without the lease took %v, %v", b.took, err)
		}
		if err := a.round(ctx, func([]index.Task) error { return killed }); !errors.Is(err, killed) || !slices.Equal(a.took, ids) {
			t.Errorf("the leader took %v, %v", a.took, err)
		}
		// The lease of the leader ends, and those of its tasks.
		if err := client.Del(ctx, prefix+"ix_r_{rounds}:docs").Err(); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if err := client.ZAdd(ctx, prefix+"ix_d_{docs}", redis.Z{Score: 1, Member: id}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(b.leases.Look(ctx), b.round(ctx, b.finish(ctx))); err != nil || !slices.Equal(b.took, ids) {
			t.Errorf("the next leader took %v, %v", b.took, err)
		}
		if n := client.ZCard(ctx, prefix+"ix_d_{docs}").Val(); n != 0 {
			t.Errorf("%d documents are still due", n)
		}
	})
}

// TestTwoLeaders: two brokers that make rounds at the same time are handed different documents.
func TestTwoLeaders(t *testing.T) {
	eachStore(t, func(t *testing.T, client redis.UniversalClient, prefix string, a, b *roundsBroker) {
		ids := documents(t, a.Index, 200)
		if err := client.Del(t.Context(), prefix+"ix_r_{rounds}:docs").Err(); err != nil { // as a failover does
			t.Fatal(err)
		}
		if err := b.leases.Look(t.Context()); err != nil || !a.Lease.Held() || !b.Lease.Held() {
			t.Fatal("there are not two leaders", err)
		}
		var both sync.WaitGroup
		for _, one := range []*roundsBroker{a, b} {
			both.Go(func() {
				if err := one.round(t.Context(), one.finish(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		took := slices.Concat(a.took, b.took)
		if slices.Sort(took); !slices.Equal(took, ids) {
			t.Errorf("%d and %d documents were handed out, %d different ones", len(a.took), len(b.took), len(slices.Compact(took)))
		}
	})
}

// TestOwnChanges: a broker without the lease computes the cards of its own changes at its next
// round.
func TestOwnChanges(t *testing.T) {
	eachStore(t, func(t *testing.T, _ redis.UniversalClient, _ string, _, b *roundsBroker) {
		cards := Cards{Index: b.Index, Lease: b.Lease, All: "all", Compute: func(_ context.Context, ids []string) (list []Computed) {
			for _, id := range ids {
				list = append(list, Computed{Card: index.Card{ID: id, Version: 1, Lists: map[string]int64{"all": 0}}})
			}
			return list
		}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- cards.Run(ctx, zerolog.Nop(), "docs") }()
		cards.Note("d")
		await.True(t, "the card is there", func() bool {
			list, err := b.Index.Get(t.Context(), "d")
			return err == nil && list[0].ID == "d"
		})
		cancel()
		if err := <-done; err != nil || b.Lease.Held() {
			t.Errorf("Run returned %v, and the broker has the lease: %v", err, b.Lease.Held())
		}
	})
}

// sweptIndex counts how often it forgets removed cards.
type sweptIndex struct {
	index.Index
	sweeps int
}

// Sweep implements index.Index.
func (i *sweptIndex) Sweep(context.Context, int) error {
	i.sweeps++
	return nil
}

// TestRunForgets: each minute, rounds forget the removed cards of all of their indexes.
func TestRunForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &sweptIndex{Index: index.NewMemory()}, &sweptIndex{Index: index.NewMemory()}
		rounds, made := Rounds{Index: a, Others: []index.Index{b}, Every: 2 * time.Second}, 0
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := rounds.Run(ctx, zerolog.Nop(), "docs", func(context.Context) error { made++; return nil }); err != nil {
			t.Error(err)
		}
		if a.sweeps != 4 || b.sweeps != 4 {
			t.Errorf("they forgot %d and %d times", a.sweeps, b.sweeps)
		}
		if made < 100 || made > 300 {
			t.Errorf("%d rounds in 5 minutes", made)
		}
	})
}

// TestFinish: a task that fails is due again after its lease, and the others when finish says.
func TestFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		rounds := Rounds{Index: index.NewMemory(), Batch: 10, TaskLease: time.Minute}
		took := func() (ids []string) {
			err := rounds.Take(t.Context(), func(tasks []index.Task, sweep time.Duration) error {
				if sweep != 0 {
					t.Errorf("without a rate, documents are due again after %v", sweep)
				}
				return rounds.Finish(t.Context(), tasks, func(_ context.Context, id string) (time.Duration, error) {
					ids = append(ids, id)
					return map[string]time.Duration{"later": 10 * time.Second}[id], map[string]error{"fails": broken}[id]
				})
			})
			if failed := slices.Contains(ids, "fails"); errors.Is(err, broken) != failed {
				t.Errorf("the error is %v", err)
			}
			slices.Sort(ids)
			return ids
		}
		if err := rounds.Index.Schedule(t.Context(), 0, "fails", "later", "once"); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			after time.Duration
			want  []string
		}{{0, []string{"fails", "later", "once"}}, {0, nil}, {11 * time.Second, []string{"later"}}, {time.Minute, []string{"fails", "later"}}} {
			time.Sleep(c.after) // of the clock of the bubble
			if got := took(); !slices.Equal(got, c.want) {
				t.Errorf("after %v, %q are due, want %q", c.after, got, c.want)
			}
		}
	})
}
