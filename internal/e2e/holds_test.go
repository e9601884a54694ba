//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"switchboard/client"
	"switchboard/client/hold"
	"switchboard/internal/await"
	"switchboard/internal/cond"
	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
)

const (
	buyerCount = 1000
	placeCount = 100
	// repeatAfter is the time until a buyer repeats a call without an answer.
	repeatAfter = 50 * time.Millisecond
)

// A buyer is a client that wants one seat of each show.
type buyer struct {
	*client.Client
	user string
}

// A sale is what the buyers of one show did.
type sale struct {
	show    string
	durable bool

	cond.Cond                       // guards the fields below
	holds     map[string]*hold.Hold // that were acknowledged, by user
	refused   int                   // buyers that found no free seat
	conflicts map[string]int        // by seat
	repeated  int                   // calls without an answer
	failures  []error
}

func newSale(show string, durable bool) *sale {
	return &sale{show: show, durable: durable, holds: map[string]*hold.Hold{}, conflicts: map[string]int{}}
}

// startBuyers connects the buyers. They begin on all brokers in turn, over WebSockets and TCP.
func startBuyers(ctx context.Context, t *testing.T, brokers []*testbed.Broker) []*buyer {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	var list []*buyer
	for i := range buyerCount {
		o := client.Options{Client: "tab", User: userOf(i), BackoffMin: 20 * time.Millisecond}
		for k := range brokers {
			o.URLs = append(o.URLs, []kind{wsHTTP, netcat, wsTCP}[i%3].url(brokers[(i+k)%len(brokers)], i))
		}
		c, err := client.New(o)
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Errorf("%s: %v", o.User, err)
			}
		})
		list = append(list, &buyer{c, o.User})
	}
	for _, b := range list {
		if err := b.Ping(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// repeat makes a call until it has a definite answer.
func repeat[T any](ctx context.Context, s *sale, call func() (T, error)) (T, error) {
	for {
		result, err := call()
		e, _ := errors.AsType[*client.Error](err)
		if !errors.Is(err, client.ErrUnknownOutcome) && (e == nil || e.Code != client.Unavailable) {
			return result, err
		}
		s.Change(func() { s.repeated++ })
		select {
		case <-time.After(repeatAfter):
		case <-ctx.Done():
			return result, ctx.Err()
		}
	}
}

// buy holds a seat at random. After a conflict it tries another one, until none is free.
func (s *sale) buy(ctx context.Context, b *buyer) error {
	for n := 0; ; n++ {
		id, seat := fmt.Sprintf("%s-%d", b.user, n), fmt.Sprint("S", 1+rand.IntN(placeCount))
		made, err := repeat(ctx, s, func() (*hold.Hold, error) {
			return hold.Take(ctx, b.Client, s.show, hold.Request{ID: id, Seats: []string{seat}, Durable: s.durable})
		})
		if err == nil {
			if made.ID != id || made.User != b.user || !slices.Equal(made.Seats, []string{seat}) || made.State != "held" {
				return fmt.Errorf("asked for %s with id %s, got %+v", seat, id, made)
			}
			s.Change(func() { s.holds[b.user] = made })
			return nil
		}
		if taken := hold.Taken(err); !slices.Equal(taken, []string{seat}) {
			return err
		}
		s.Change(func() { s.conflicts[seat]++ })
		shows, err := repeat(ctx, s, func() ([]*hold.Resource, error) { return hold.Resources(ctx, b.Client, s.show) })
		if err != nil {
			return err
		}
		if shows[0].Free == 0 {
			s.Change(func() { s.refused++ })
			return nil
		}
	}
}

// open opens the sale.
func (s *sale) open(ctx context.Context, t *testing.T, seller *testbed.Broker) {
	t.Helper()
	body := fmt.Sprintf(`{"seats":["S1..S%d"],"durable":%t}`, placeCount, s.durable)
	if status, text := call(ctx, t, seller, http.MethodPut, "/v1/holds/"+s.show, body); status != http.StatusOK {
		t.Fatalf("PUT: %d %s", status, text)
	}
}

// run lets all buyers buy at once. It calls fault when this number of holds was acknowledged.
func (s *sale) run(ctx context.Context, t *testing.T, buyers []*buyer, acknowledged int, fault func()) {
	t.Helper()
	var done atomic.Int64
	for _, b := range buyers {
		go func() {
			err := s.buy(ctx, b)
			done.Add(1)
			s.Change(func() {
				if err != nil {
					s.failures = append(s.failures, fmt.Errorf("%s: %w", b.user, err))
				}
			})
		}()
	}
	s.await(ctx, t, func() bool { return len(s.holds) >= acknowledged })
	fault()
	s.await(ctx, t, func() bool { return done.Load() == int64(len(buyers)) })
}

// runWithoutReplica is run with a replica that has no link to the master: no hold may be
// acknowledged. When half of the places are held, the master is killed, and the replica takes over
// without these holds.
func (s *sale) runWithoutReplica(ctx context.Context, t *testing.T, seller *testbed.Broker, buyers []*buyer, sentinel *redistest.Sentinel) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	master, err := sentinel.Master(ctx)
	must(err)
	replica, err := sentinel.Replica(ctx)
	must(err)
	must(replica.Detach(ctx))
	s.run(ctx, t, buyers, 0, func() {
		await.True(t, "half of the places are held", func() bool { return s.status(ctx, t, seller).Held >= placeCount/2 })
		master.Kill()
		must(sentinel.Rejoin(ctx, master))
		must(replica.Attach(ctx))
	})
}

// status returns the resource, as it is stored.
func (s *sale) status(ctx context.Context, t *testing.T, b *testbed.Broker) (status hold.Resource) {
	t.Helper()
	_, text := call(ctx, t, b, http.MethodGet, "/v1/holds/"+s.show, "")
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return status
}

// await waits until done returns true. A failure of any buyer ends the test at once.
func (s *sale) await(ctx context.Context, t *testing.T, done func() bool) {
	t.Helper()
	err := s.Await(ctx, func() bool { return len(s.failures) > 0 || done() })
	s.Lock()
	defer s.Unlock()
	for _, problem := range s.failures[:min(len(s.failures), 10)] {
		t.Error(problem)
	}
	if err != nil || len(s.failures) > 0 {
		t.Fatalf("%s: %v; %d holds, %d buyers refused", s.show, err, len(s.holds), s.refused)
	}
}

// change lets a quarter of the holders release their seat, and confirms the hold of another
// quarter. It returns the states that the holds must have then, by user.
func (s *sale) change(ctx context.Context, t *testing.T, seller *testbed.Broker, buyers []*buyer) map[string]string {
	t.Helper()
	states := map[string]string{}
	for _, b := range buyers {
		made := s.holds[b.user]
		if made == nil {
			continue
		}
		switch len(states) % 4 {
		case 0:
			ended, err := hold.Release(ctx, b.Client, s.show, made.ID)
			if err != nil || ended.State != "released" {
				t.Fatalf("release: %+v, %v", ended, err)
			}
			states[b.user] = "released"
		case 1:
			path := fmt.Sprintf("/v1/holds/%s/holds/%s/confirm", s.show, made.ID)
			if status, text := call(ctx, t, seller, http.MethodPost, path, fmt.Sprintf(`{"durable":%t}`, s.durable)); status != http.StatusOK {
				t.Fatalf("confirm: %d %s", status, text)
			}
			states[b.user] = "sold"
		default:
			states[b.user] = "held"
		}
	}
	return states
}

// check compares the answers with what is stored, and with the log.
func (s *sale) check(ctx context.Context, t *testing.T, b *testbed.Broker, states map[string]string) {
	t.Helper()
	count := map[string]int{}
	for user, want := range states {
		made, stored := s.holds[user], hold.Hold{}
		_, text := call(ctx, t, b, http.MethodGet, fmt.Sprintf("/v1/holds/%s/holds/%s", s.show, made.ID), "")
		if err := json.Unmarshal([]byte(text), &stored); err != nil || stored.State != want || stored.User != user || !slices.Equal(stored.Seats, made.Seats) {
			t.Errorf("%s: acknowledged as %s of %v, stored is %s", made.ID, want, made.Seats, text)
		}
		count[want]++
	}
	if status := s.status(ctx, t, b); status.Sold != count["sold"] || status.Held != count["held"] {
		t.Errorf("stored is %+v, want %d sold and %d held", status, count["sold"], count["held"])
	}
	fold, most, used := fieldIDs{}, 0, map[string]bool{}
	log := readLog(ctx, t, b, "hold:"+s.show)
	if len(log) == 0 || log[0].Set["$resource"] == nil {
		t.Fatalf("the log of %d messages does not begin with the resource", len(log))
	}
	for _, m := range log {
		fold.apply(m)
		taken := fold.group("seat/")
		if most = max(most, len(taken)); len(taken) > placeCount {
			t.Errorf("%d seats are taken at id %d", len(taken), m.ID)
		}
		for name := range m.Set {
			used[name] = true
		}
	}
	if s.refused > 0 && most != placeCount {
		t.Errorf("%d buyers found no free seat, but at most %d were taken", s.refused, most)
	}
	for seat := range s.conflicts {
		if !used["seat/"+seat] {
			t.Errorf("seat %s was said to be taken, but never was", seat)
		}
	}
	for user, made := range s.holds {
		if !used["$$hold/"+made.ID] {
			t.Errorf("%s: the hold %s is not in the log", user, made.ID)
		}
	}
}

// TestHolds lets 1,000 clients hold 100 seats of two shows on three brokers over Redis with a
// replica. When half of the seats of the first show are held, a broker is killed. In the second
// show, whose holds are durable, the replica first loses its link to the master. The master is then
// killed with holds that only it has, and the replica takes over. Each answer that a client or the
// backend got must be true at the end.
func TestHolds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	logf := timedLog(t)
	sentinel := redistest.StartSentinel(t)
	d := deployWith(t, 3, deployOptions{env: []string{"SWITCHBOARD_KIT_HOLDS={}"}, redis: sentinel.URL()})
	buyers := startBuyers(ctx, t, d.brokers)
	logf("all buyers are connected")

	first := newSale("first", false)
	first.open(ctx, t, d.brokers[0])
	first.run(ctx, t, buyers, placeCount/2, func() { end(ctx, t, d.brokers[1], syscall.SIGKILL) })
	first.check(ctx, t, d.brokers[2], first.change(ctx, t, d.brokers[0], buyers))
	logf("a broker was killed: %d holds, %d buyers refused, %d calls repeated", len(first.holds), first.refused, first.repeated)

	second := newSale("second", true)
	second.open(ctx, t, d.brokers[0])
	second.runWithoutReplica(ctx, t, d.brokers[0], buyers, sentinel)
	logf("the master was killed, and the replica has taken over without its holds")
	second.check(ctx, t, d.brokers[2], second.change(ctx, t, d.brokers[0], buyers))
	logf("the master was killed: %d durable holds, %d buyers refused, %d calls repeated", len(second.holds), second.refused, second.repeated)
	for _, b := range []*testbed.Broker{d.brokers[0], d.brokers[2]} {
		await.True(t, "the metrics show the places of both shows", func() bool {
			_, text := call(ctx, t, b, http.MethodGet, "/metrics", "")
			return strings.Contains(text, "\nswitchboard_holds{state=\"held\"} 100\nswitchboard_holds{state=\"sold\"} 50\n")
		})
	}
	if out, err := exec.Command(filepath.Join(binaries, "janitor"), "check", "--redis", sentinel.URL()).CombinedOutput(); err != nil {
		t.Errorf("janitor check: %v\n%s", err, out)
	}
	for _, s := range []*sale{first, second} {
		if len(s.holds) != placeCount || s.refused != buyerCount-placeCount || s.repeated == 0 {
			t.Errorf("%s: %d holds, %d refused, %d repeated calls", s.show, len(s.holds), s.refused, s.repeated)
		}
	}
}
