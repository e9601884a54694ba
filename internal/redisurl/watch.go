package redisurl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Watch notices that a Redis was restarted, or that another took its place by
// failover: writes may be lost then, so whoever uses it asserts its state anew.
//
// Each new connection asks its server for master_replid (INFO replication, one round
// trip), which is made anew at every start of a master and at every promotion, and
// which a replica shares with its master. One never seen before is a notice.
//
// It is a hint. It may come for nothing (a node added to a Cluster; any new
// connection where INFO is forbidden), it may come while the new server cannot serve
// yet, and it is missed where a server loses its part and gets it back over living
// connections. So the answer to it must be harmless to repeat and is tried until it succeeds.
type Watch struct {
	client  redis.UniversalClient
	changed chan struct{} // one slot

	epoch atomic.Uint64             // how many histories were seen
	metAt atomic.Pointer[time.Time] // when the last of them was, nil before begun

	mu    sync.Mutex // guards the fields below
	seen  map[string]bool
	begun bool
}

func newWatch() *Watch {
	return &Watch{changed: make(chan struct{}, 1), seen: map[string]bool{}}
}

// Changed has something to receive after a notice; several in a row are one.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Epoch is another number from before the first command to a Redis that was not known.
func (w *Watch) Epoch() uint64 { return w.epoch.Load() }

// Replaced says that a Redis which was not known has been met in the last two minutes, and after Begin.
func (w *Watch) Replaced() bool {
	at := w.metAt.Load()
	return at != nil && time.Since(*at) < 2*time.Minute
}

// Begin connects to every master, so that those there now are known, and from then on
// new ones are noticed. It may be called until it succeeds.
func (w *Watch) Begin(ctx context.Context) error {
	if err := eachMaster(ctx, w.client, func(ctx context.Context, node *redis.Client) error {
		return node.Ping(ctx).Err()
	}); err != nil {
		return fmt.Errorf("connect to Redis: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = true
	return nil
}

func (w *Watch) onConnect(ctx context.Context, conn *redis.Conn) error {
	info, err := conn.Info(ctx, "replication").Result()
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered {
		return err
	}
	if err == nil && info == "" {
		return nil // a Sentinel: it holds no data
	}
	w.saw(infoField(info, "master_replid"))
	return nil
}

// infoField is the value of one line of an INFO answer, "" when it is not there.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// saw takes note of the history of one server; "" is one that cannot be told from others.
func (w *Watch) saw(history string) {
	w.mu.Lock()
	known := w.seen[history] && history != ""
	w.seen[history] = true
	if !known {
		w.epoch.Add(1)
	}
	notice := w.begun && !known
	w.mu.Unlock()
	if notice {
		w.metAt.Store(new(time.Now()))
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// eachMaster runs do for every master, in a Cluster at the same time.
func eachMaster(ctx context.Context, client redis.UniversalClient, do func(context.Context, *redis.Client) error) error {
	switch c := client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, do)
	case *redis.Client:
		return do(ctx, c)
	}
	return fmt.Errorf("a %T has no masters", client)
}
