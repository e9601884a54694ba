//go:build long

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

var herdSize = flag.Int("herd", 1000, "how many clients TestReconnectsReadStateOnce connects")

// herdFields is the number of fields. One command reads up to 64 names.
const herdFields = 40

// TestReconnectsReadStateOnce connects many clients at once, with the state of one channel, while
// the state changes. After the connections are lost, and after a broker is killed, the clients
// connect again at once. Each time, each broker reads the state at most once, and not at all if it
// still has it.
func TestReconnectsReadStateOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	logf := timedLog(t)
	d := deploy(t, 3)
	for i := range herdFields {
		change(ctx, t, d.brokers[0], fmt.Sprintf(`{"channel":"big","set":{"field/%02d":{"text":%q}}}`, i, strings.Repeat("x", 400)))
	}
	h := &herd{d: d, clients: make([]*follower, *herdSize)}
	defer h.drop()
	for _, step := range []struct {
		name     string
		min, max int64 // reads of the state
		before   func()
	}{
		{"first connect", 3, 3, func() {}},
		{"all connections are lost", 0, 3, h.drop},
		{"a broker is killed", 0, 2, func() {
			end(ctx, t, d.brokers[0], syscall.SIGKILL)
			h.d.brokers = d.brokers[1:]
			h.drop()
		}},
	} {
		step.before()
		before := stateReads(ctx, t, d.redis)
		h.connect(ctx, t)
		reads := stateReads(ctx, t, d.redis) - before
		logf("%s: %d clients have all %d fields; %d reads of the state", step.name, len(h.clients), herdFields, reads)
		if reads < step.min || reads > step.max {
			t.Errorf("%s: %d reads of the state, want %d to %d", step.name, reads, step.min, step.max)
		}
	}
}

// stateReads returns how many times Redis read names of fields. A read of the state does it once.
func stateReads(ctx context.Context, t *testing.T, rdb *redis.Client) (calls int64) {
	t.Helper()
	info, err := rdb.InfoMap(ctx, "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	if stats, ok := info["Commandstats"]["cmdstat_zrangebylex"]; ok {
		if _, err := fmt.Sscanf(stats, "calls=%d", &calls); err != nil {
			t.Fatalf("%s: %v", stats, err)
		}
	}
	return calls
}

// A herd is many clients that connect at the same time.
type herd struct {
	d       *deployment
	clients []*follower
	shift   int
}

// drop closes all connections.
func (h *herd) drop() {
	for _, f := range h.clients {
		if f != nil {
			f.conn.Close()
		}
	}
}

// connect connects all clients, each to another broker than before. The state changes meanwhile.
func (h *herd) connect(ctx context.Context, t *testing.T) {
	t.Helper()
	h.shift++
	connected, stop := context.WithCancel(ctx)
	writer := make(chan error, 1)
	go func() { writer <- h.write(connected) }()
	var all sync.WaitGroup
	errs := make([]error, len(h.clients))
	for i := range h.clients {
		all.Go(func() { h.clients[i], errs[i] = h.connectOne(ctx, i) })
	}
	all.Wait()
	stop()
	if err := errors.Join(append(errs, <-writer)...); err != nil {
		t.Fatal(err)
	}
}

func (h *herd) connectOne(ctx context.Context, i int) (*follower, error) {
	f, err := dialState(ctx, h.d.brokers[(i+h.shift)%len(h.d.brokers)], userOf(i), "tab", "big")
	if err == nil && len(f.pages) != herdFields {
		err = fmt.Errorf("client %d has %d fields, want %d", i, len(f.pages), herdFields)
	}
	return f, err
}

// write changes one field until ctx ends.
func (h *herd) write(ctx context.Context) error {
	for n := 0; ; n++ {
		body := fmt.Sprintf(`{"channel":"big","set":{"field/00":%d}}`, n)
		if err := tryChange(ctx, h.d.brokers[n%len(h.d.brokers)], body); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}
