package redisurl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/slots"
)

// Watch detects that a Redis restarted, or that another one took over in a failover. Writes may be
// lost then, so the broker writes its state again.
//
// Each new connection reads the replication id of its server, master_replid (INFO replication, one
// round trip). The id changes with every start of a master and with every promotion. A replica has
// the id of its master. An id that was not seen before is a change.
//
// A change concerns the slots that the server has then, by its own answer. It concerns all slots if
// the server is not in a Cluster, or does not say. A server of a Cluster that has no slots is asked
// again at its next connection.
//
// A change is only a hint. It may be wrong: slots moved to a new node of a Cluster, or INFO is
// forbidden, which makes every connection a change. It may come before the new server accepts
// commands. It is missed if a server is demoted and promoted again while its connections stay open.
// The reaction to a change must therefore be harmless to repeat, and be retried until it succeeds.
type Watch struct {
	client  redis.UniversalClient
	changed chan slots.Set // one slot; only add sends, under mu

	epoch     atomic.Uint64              // number of changes
	epochs    [slots.Count]atomic.Uint32 // by slot, the number of changes that concern it
	masters   [slots.Count]atomic.Uint32 // by slot, the number of the server that had it last
	changedAt atomic.Pointer[time.Time]  // time of the last change after Begin, nil for none

	mu    sync.Mutex // guards the fields below
	seen  map[string]bool
	begun bool
}

func newWatch() *Watch {
	return &Watch{changed: make(chan slots.Set, 1), seen: map[string]bool{}}
}

// Changed returns a channel that receives the slots that a change concerns. Several changes may be
// merged.
func (w *Watch) Changed() <-chan slots.Set { return w.changed }

// Epoch returns a number that changes before the first command to a new Redis is sent.
func (w *Watch) Epoch() uint64 { return w.epoch.Load() }

// EpochOf returns a number that changes before the first command about a name is sent to a new
// Redis: about a channel, a client, a user or a server, whose keys have the name in braces.
func (w *Watch) EpochOf(name string) uint64 { return uint64(w.epochs[slots.Of(name)].Load()) }

// MasterOf returns a number that is the same for names whose keys one server has, as far as their
// slots were read when the server was seen for the first time. It is 0 for the slots of servers
// that were not seen yet.
func (w *Watch) MasterOf(name string) int { return int(w.masters[slots.Of(name)].Load()) }

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

// onConnect reads the replication id of the server of a new connection, and the slots of a new
// server.
func (w *Watch) onConnect(ctx context.Context, conn *redis.Conn) error {
	info, err := conn.Info(ctx, "replication").Result()
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered {
		return err
	}
	if err == nil && info == "" {
		return nil // a Sentinel, which has no data
	}
	id := infoField(info, "master_replid")
	if w.knows(id) {
		return nil
	}
	concerned, err := slotsOf(ctx, conn)
	if err == nil && !concerned.Empty() {
		w.add(id, &concerned)
	}
	return err
}

// slotsOf returns the slots of the server of a connection: all of them if it is not in a Cluster,
// or does not say.
func slotsOf(ctx context.Context, conn *redis.Conn) (of slots.Set, err error) {
	id, err := conn.ClusterMyID(ctx).Result()
	var shards []redis.ClusterShard
	if err == nil {
		shards, err = conn.ClusterShards(ctx).Result()
	}
	if _, answered := errors.AsType[redis.Error](err); answered {
		return slots.All(), nil
	}
	for _, shard := range shards {
		if slices.ContainsFunc(shard.Nodes, func(n redis.Node) bool { return n.ID == id && n.Role == "master" }) {
			for _, s := range shard.Slots {
				of.Add(int(s.Start), int(s.End))
			}
		}
	}
	return of, err
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

// knows reports whether a replication id was seen before. An unknown id, "", always counts as new.
func (w *Watch) knows(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.knowsLocked(id)
}

func (w *Watch) knowsLocked(id string) bool { return w.seen[id] && id != "" }

// add records the replication id of a server, and the slots that it concerns if it is new.
func (w *Watch) add(id string, concerned *slots.Set) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.knowsLocked(id) {
		return
	}
	w.seen[id] = true
	for slot := range slots.Count {
		if concerned.Has(slot) {
			w.epochs[slot].Add(1)
			w.masters[slot].Store(uint32(len(w.seen)))
		}
	}
	w.epoch.Add(1)
	if !w.begun {
		return
	}
	w.changedAt.Store(new(time.Now()))
	merged := *concerned
	select {
	case earlier := <-w.changed:
		merged.AddAll(&earlier)
	default:
	}
	w.changed <- merged
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
