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

// pause is between two rounds: the crowd is not the attack.
const pause = 20 * time.Millisecond

// crowd is one member for each way in, and a backend. In each round the backend pushes to the plaza and to every
// member, and every member publishes to the plaza; it ends when all of that has arrived at everybody.
type crowd struct {
	victim  *victim
	members []*member
	leave   context.CancelFunc
	gone    sync.WaitGroup

	cond     cond.Cond      // guards the fields below
	last     map[string]int // of each stream at each member: "member stream"
	done     int            // rounds
	sickened error          // the first thing that went wrong
}

func gather(ctx context.Context, t *testing.T, v *victim, i *issuer) *crowd {
	t.Helper()
	c := &crowd{victim: v, last: map[string]int{}}
	ctx, c.leave = context.WithCancel(ctx)
	t.Cleanup(func() {
		c.leave()
		for _, m := range c.members {
			m.conn.Close()
		}
		c.gone.Wait()
	})
	for _, w := range ways {
		m, err := join(ctx, v, w, "good-"+w.name, i.token("good-"+w.name))
		if err != nil {
			t.Fatal(err)
		}
		c.members = append(c.members, m)
		c.gone.Go(func() { c.follow(ctx, m) })
	}
	c.gone.Go(func() { c.play(ctx) })
	return c
}

// complain keeps the first complaint. What happens when all leave is none.
func (c *crowd) complain(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	c.cond.Change(func() {
		if c.sickened == nil {
			c.sickened = err
		}
	})
}

// follow checks what a member gets.
func (c *crowd) follow(ctx context.Context, m *member) {
	for {
		p, err := m.take(ctx)
		if err != nil {
			c.complain(ctx, err)
			return
		}
		c.cond.Change(func() {
			key := m.name + " " + p.Stream
			if p.N != c.last[key]+1 && c.sickened == nil {
				c.sickened = fmt.Errorf("%s got %d of %s behind %d", m.name, p.N, p.Stream, c.last[key])
			}
			c.last[key] = p.N
		})
	}
}

// play plays round after round.
func (c *crowd) play(ctx context.Context) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for n := 1; ; n++ {
		if err := c.round(ctx, n); err != nil {
			c.complain(ctx, fmt.Errorf("round %d: %w", n, err))
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

func (c *crowd) round(ctx context.Context, n int) error {
	batch := []string{}
	for _, m := range c.members {
		batch = append(batch, fmt.Sprintf(`{"user":%q,"data":{"stream":"queue","n":%d}}`, m.name, n))
	}
	for path, body := range map[string]string{
		"/v1/push":       fmt.Sprintf(`{"channel":%q,"data":{"stream":"backend","n":%d}}`, plaza, n),
		"/v1/push/batch": `{"messages":[` + strings.Join(batch, ",") + `]}`,
	} {
		status, answer, err := c.victim.request(ctx, http.MethodPost, path, c.victim.key, strings.NewReader(body))
		if err != nil || status != http.StatusOK || strings.Contains(answer, `"error"`) {
			return fmt.Errorf("%s: %d %s (%w)", path, status, answer, err)
		}
	}
	for _, m := range c.members {
		if err := m.publish(ctx, n); err != nil {
			return fmt.Errorf("%s cannot publish: %w", m.name, err)
		}
	}
	return c.cond.Await(ctx, func() bool { return c.sickened != nil || c.haveAllLocked(n) })
}

// haveAllLocked says whether every member has n messages of each stream.
func (c *crowd) haveAllLocked(n int) bool {
	for _, m := range c.members {
		for _, stream := range []string{"backend", "queue"} {
			if c.last[m.name+" "+stream] != n {
				return false
			}
		}
		for _, other := range c.members {
			if c.last[m.name+" "+other.name] != n {
				return false
			}
		}
	}
	return true
}

// rounds is how many are over, and what went wrong.
func (c *crowd) rounds() (int, error) {
	c.cond.Lock()
	defer c.cond.Unlock()
	return c.done, c.sickened
}

// advance waits for n whole rounds from now on.
func (c *crowd) advance(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	first, _ := c.rounds()
	err := c.cond.Await(ctx, func() bool { return c.sickened != nil || c.done > first+n })
	done, sickened := c.rounds()
	if sickened != nil {
		err = sickened
	}
	if err != nil {
		t.Fatalf("the well-behaved, after %d rounds: %v", done, err)
	}
}
