//go:build long

package attack

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/cond"
)

// pause is the time between two rounds. It keeps the load of the honest clients low.
const pause = 20 * time.Millisecond

// traffic is one honest client per transport, and a backend. In each round the backend pushes to
// the shared channel and to every client, and every client publishes to the shared channel. A round
// ends when every client has received all of these messages.
type traffic struct {
	broker  *broker
	clients []*honestClient
	stop    context.CancelFunc
	running sync.WaitGroup

	cond cond.Cond      // guards the fields below
	last map[string]int // last number, by "client stream"
	done int            // complete rounds
	err  error          // the first failure
}

func startTraffic(ctx context.Context, t *testing.T, b *broker, i *issuer) *traffic {
	t.Helper()
	tr := &traffic{broker: b, last: map[string]int{}}
	ctx, tr.stop = context.WithCancel(ctx)
	t.Cleanup(func() {
		tr.stop()
		for _, h := range tr.clients {
			h.conn.Close()
		}
		tr.running.Wait()
	})
	for _, w := range transports {
		h, err := connectHonest(ctx, b, w, "good-"+w.name, i.token("good-"+w.name))
		if err != nil {
			t.Fatal(err)
		}
		tr.clients = append(tr.clients, h)
		tr.running.Go(func() { tr.receive(ctx, h) })
	}
	tr.running.Go(func() { tr.run(ctx) })
	return tr
}

// fail records the first failure. Errors after stop do not count.
func (tr *traffic) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	tr.cond.Change(func() {
		if tr.err == nil {
			tr.err = err
		}
	})
}

// receive checks the messages that a client receives.
func (tr *traffic) receive(ctx context.Context, h *honestClient) {
	for {
		p, err := h.receive(ctx)
		if err != nil {
			tr.fail(ctx, err)
			return
		}
		tr.cond.Change(func() {
			key := h.name + " " + p.Stream
			if p.N != tr.last[key]+1 && tr.err == nil {
				tr.err = fmt.Errorf("%s received %d of %s after %d", h.name, p.N, p.Stream, tr.last[key])
			}
			tr.last[key] = p.N
		})
	}
}

// run runs rounds until ctx ends.
func (tr *traffic) run(ctx context.Context) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for n := 1; ; n++ {
		if err := tr.round(ctx, n); err != nil {
			tr.fail(ctx, fmt.Errorf("round %d: %w", n, err))
			return
		}
		tr.cond.Change(func() { tr.done = n })
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (tr *traffic) round(ctx context.Context, n int) error {
	batch := []string{}
	for _, h := range tr.clients {
		batch = append(batch, fmt.Sprintf(`{"user":%q,"data":{"stream":"queue","n":%d}}`, h.name, n))
	}
	for path, body := range map[string]string{
		"/v1/push":       fmt.Sprintf(`{"channel":%q,"data":{"stream":"backend","n":%d}}`, sharedChannel, n),
		"/v1/push/batch": `{"messages":[` + strings.Join(batch, ",") + `]}`,
	} {
		status, answer, err := tr.broker.request(ctx, http.MethodPost, path, tr.broker.Key, strings.NewReader(body))
		if err != nil || status != http.StatusOK || strings.Contains(answer, `"error"`) {
			return fmt.Errorf("%s: %d %s (%w)", path, status, answer, err)
		}
	}
	for _, h := range tr.clients {
		if err := h.publish(ctx, n); err != nil {
			return fmt.Errorf("%s cannot publish: %w", h.name, err)
		}
	}
	return tr.cond.Await(ctx, func() bool { return tr.err != nil || tr.allReceivedLocked(n) })
}

// allReceivedLocked reports whether every client has n messages of each stream.
func (tr *traffic) allReceivedLocked(n int) bool {
	for _, h := range tr.clients {
		for _, stream := range []string{"backend", "queue"} {
			if tr.last[h.name+" "+stream] != n {
				return false
			}
		}
		for _, other := range tr.clients {
			if tr.last[h.name+" "+other.name] != n {
				return false
			}
		}
	}
	return true
}

// rounds returns the number of complete rounds and the first failure.
func (tr *traffic) rounds() (int, error) {
	tr.cond.Lock()
	defer tr.cond.Unlock()
	return tr.done, tr.err
}

// waitRounds waits for n rounds that begin after the call.
func (tr *traffic) waitRounds(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	first, _ := tr.rounds()
	err := tr.cond.Await(ctx, func() bool { return tr.err != nil || tr.done > first+n })
	done, failure := tr.rounds()
	if failure != nil {
		err = failure
	}
	if err != nil {
		t.Fatalf("honest clients, after %d rounds: %v", done, err)
	}
}
