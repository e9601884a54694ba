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

// Watch detects that a Redis restarted, or that another one took over in a failover. Writes may be
// lost then, so the broker writes its state again.
//
// Each new connection reads the replication id of its server, master_replid (INFO replication, one
// round trip). The id changes with every start of a master and with every promotion. A replica has
// the id of its master. An id that was not seen before is a change.
//
// A change is only a hint. It may be wrong: a node was added to a Cluster, or INFO is forbidden,
// which makes every connection a change. It may come before the new server accepts commands. It is
// missed if a server is demoted and promoted again while its connections stay open. The reaction to
// a change must therefore be harmless to repeat, and be retried until it succeeds.
type Watch struct {
	client  redis.UniversalClient
	changed chan struct{} // one slot

	epoch     atomic.Uint64             // number of replication ids seen
	changedAt atomic.Pointer[time.Time] // time of the last change after Begin, nil for none

	mu    sync.Mutex // guards the fields below
	seen  map[string]bool
	begun bool
}

func newWatch() *Watch {
	return &Watch{changed: make(chan struct{}, 1), seen: map[string]bool{}}
}

// Changed returns a channel that receives after a change. Several changes may be merged.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Epoch returns a number that changes before the first command to a new Redis is sent.
func (w *Watch) Epoch() uint64 { return w.epoch.Load() }

// Replaced reports whether there was a change after Begin, within the last two minutes.
func (w *Watch) Replaced() bool {
	at := w.changedAt.Load()
	return at != nil && time.Since(*at) < 2*time.Minute
}

// Begin connects to every master, and from then on reports changes. It may be called again until it
// succeeds.
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

// onConnect reads the replication id of the server of a new connection.
func (w *Watch) onConnect(ctx context.Context, conn *redis.Conn) error {
	info, err := conn.Info(ctx, "replication").Result()
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered {
		return err
	}
	if err == nil && info == "" {
		return nil // a Sentinel, which has no data
	}
	w.add(infoField(info, "master_replid"))
	return nil
}

// infoField returns the value of one line of an INFO reply, "" if it is missing.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// add records the replication id of a server. An unknown id, "", always counts as new.
func (w *Watch) add(id string) {
	w.mu.Lock()
	known := w.seen[id] && id != ""
	w.seen[id] = true
	if !known {
		w.epoch.Add(1)
	}
	changed := w.begun && !known
	w.mu.Unlock()
	if changed {
		w.changedAt.Store(new(time.Now()))
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// eachMaster runs do for every master, in a Cluster concurrently.
func eachMaster(ctx context.Context, client redis.UniversalClient, do func(context.Context, *redis.Client) error) error {
	switch c := client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, do)
	case *redis.Client:
		return do(ctx, c)
	}
	return fmt.Errorf("a %T has no masters", client)
}
