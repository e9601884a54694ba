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
	c := &traffic{broker: b, last: map[string]int{}}
	ctx, c.stop = context.WithCancel(ctx)
	t.Cleanup(func() {
		c.stop()
		for _, m := range c.clients {
			m.conn.Close()
		}
		c.running.Wait()
	})
	for _, w := range transports {
		m, err := connectHonest(ctx, b, w, "good-"+w.name, i.token("good-"+w.name))
		if err != nil {
			t.Fatal(err)
		}
		c.clients = append(c.clients, m)
		c.running.Go(func() { c.receive(ctx, m) })
	}
	c.running.Go(func() { c.run(ctx) })
	return c
}

// fail records the first failure. Errors after stop do not count.
func (c *traffic) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	c.cond.Change(func() {
		if c.err == nil {
			c.err = err
		}
	})
}

// receive checks the messages that a client receives.
func (c *traffic) receive(ctx context.Context, m *honestClient) {
	for {
		p, err := m.receive(ctx)
		if err != nil {
			c.fail(ctx, err)
			return
		}
		c.cond.Change(func() {
			key := m.name + " " + p.Stream
			if p.N != c.last[key]+1 && c.err == nil {
				c.err = fmt.Errorf("%s received %d of %s after %d", m.name, p.N, p.Stream, c.last[key])
			}
			c.last[key] = p.N
		})
	}
}

// run runs rounds until ctx ends.
func (c *traffic) run(ctx context.Context) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for n := 1; ; n++ {
		if err := c.round(ctx, n); err != nil {
			c.fail(ctx, fmt.Errorf("round %d: %w", n, err))
			return
		}
		c.cond.Change(func() { c.done = n })
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *traffic) round(ctx context.Context, n int) error {
	batch := []string{}
	for _, m := range c.clients {
		batch = append(batch, fmt.Sprintf(`{"user":%q,"data":{"stream":"queue","n":%d}}`, m.name, n))
	}
	for path, body := range map[string]string{
		"/v1/push":       fmt.Sprintf(`{"channel":%q,"data":{"stream":"backend","n":%d}}`, sharedChannel, n),
		"/v1/push/batch": `{"messages":[` + strings.Join(batch, ",") + `]}`,
	} {
		status, answer, err := c.broker.request(ctx, http.MethodPost, path, c.broker.key, strings.NewReader(body))
		if err != nil || status != http.StatusOK || strings.Contains(answer, `"error"`) {
			return fmt.Errorf("%s: %d %s (%w)", path, status, answer, err)
		}
	}
	for _, m := range c.clients {
		if err := m.publish(ctx, n); err != nil {
			return fmt.Errorf("%s cannot publish: %w", m.name, err)
		}
	}
	return c.cond.Await(ctx, func() bool { return c.err != nil || c.allReceivedLocked(n) })
}

// allReceivedLocked reports whether every client has n messages of each stream.
func (c *traffic) allReceivedLocked(n int) bool {
	for _, m := range c.clients {
		for _, stream := range []string{"backend", "queue"} {
			if c.last[m.name+" "+stream] != n {
				return false
			}
		}
		for _, other := range c.clients {
			if c.last[m.name+" "+other.name] != n {
				return false
			}
		}
	}
	return true
}

// rounds returns the number of complete rounds and the first failure.
func (c *traffic) rounds() (int, error) {
	c.cond.Lock()
	defer c.cond.Unlock()
	return c.done, c.err
}

// waitRounds waits for n rounds that begin after the call.
func (c *traffic) waitRounds(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	first, _ := c.rounds()
	err := c.cond.Await(ctx, func() bool { return c.err != nil || c.done > first+n })
	done, failure := c.rounds()
	if failure != nil {
		err = failure
	}
	if err != nil {
		t.Fatalf("honest clients, after %d rounds: %v", done, err)
	}
}
