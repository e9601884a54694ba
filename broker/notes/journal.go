package notes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/note"
	"switchboard/internal/redispipe"
)

const (
	// ttl is the TTL of a key, so a dead server's notes can be read for at least 40 s.
	ttl = time.Minute
	// renewal is the interval at which the TTL is renewed.
	renewal = 20 * time.Second
	// maxTags bounds the keys of one process. Tags are added when masters are, and never removed.
	maxTags = 256
	// floorMember is the member of the floor, and floorScore what its score has above the floor.
	floorMember = "floor"
	floorScore  = maxNumber + 1
)

// Journal writes the notes of a Writer into Redis. It implements [redispipe.Journal].
type Journal struct {
	*Writer
	client  redis.UniversalClient
	prefix  string
	timeout time.Duration

	mu      sync.RWMutex // guards the fields below
	server  string       // the part of the keys after the tag; "" until the first Describe
	tags    []int
	keys    []string             // of tags
	masters map[any]string       // the key for each node; nodes without a key are missing
	renewed map[string]time.Time // when the TTL of each key was renewed last
}

// NewJournal returns a Journal that writes no notes until the first Beat. The keys begin with
// prefix. client must not retry by itself.
func NewJournal(client redis.UniversalClient, prefix string) *Journal {
	return &Journal{
		Writer: NewWriter(), client: client, prefix: prefix, timeout: 3 * time.Second,
		masters: make(map[any]string), renewed: make(map[string]time.Time),
	}
}

// keyOf returns the key for a node, "" if there is none yet.
func (j *Journal) keyOf(ctx context.Context, node any) string {
	j.mu.RLock()
	found, known := j.masters[node]
	keys := j.keys
	j.mu.RUnlock()
	if known || len(keys) == 0 {
		return found
	}
	cluster, ok := j.client.(*redis.ClusterClient)
	if !ok {
		found = keys[0]
	}
	for i := 0; ok && found == "" && i < len(keys); i++ {
		if master, err := cluster.MasterForKey(ctx, keys[i]); err == nil && any(master) == node {
			found = keys[i]
		}
	}
	if found != "" {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.masters[node] = found
	}
	return found
}

// forget makes keyOf find the keys of all nodes again.
func (j *Journal) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.masters)
}

// entry is the commands of one pipeline. It implements [redispipe.Entry].
type entry struct {
	j       *Journal
	write   Write
	key     string
	note    *redis.IntCmd // nil for none
	all     [3]redis.Cmder
	n       int
	removal bool // note removes the floor
}

// Begin implements redispipe.Journal.
func (j *Journal) Begin(ctx context.Context, node any, names []note.Name) redispipe.Entry {
	if _, unknown := node.(*redis.ClusterClient); unknown {
		j.failAll(ctx)
	}
	e := &entry{j: j, key: j.keyOf(ctx, node)}
	e.write = j.Writer.Begin(e.key, names)
	switch w := &e.write; {
	case w.RemoveFloor:
		e.note, e.removal = redis.NewIntCmd(ctx, "zrem", e.key, floorMember), true
	case w.Entry.Number != 0:
		member := w.Entry.Append(make([]byte, 0, w.Entry.size()))
		e.note = redis.NewIntCmd(ctx, "zadd", e.key, w.Entry.Number, member)
	default:
		return e
	}
	e.add(e.note)
	if trim := e.write.Trim; trim != 0 {
		e.add(raiseFloor(ctx, e.key, trim))
		e.add(removeEntries(ctx, e.key, trim))
	}
	return e
}

func (e *entry) add(cmd redis.Cmder) {
	e.all[e.n] = cmd
	e.n++
}

// Commands implements redispipe.Entry.
func (e *entry) Commands() []redis.Cmder { return e.all[:e.n] }

// End implements redispipe.Entry.
func (e *entry) End() {
	var err error
	if e.note != nil {
		err = e.note.Err()
	}
	_, refused := errors.AsType[redis.Error](err)
	switch {
	case e.removal && err == nil:
		e.j.Removed(e.key)
	case refused && !e.removal:
		e.j.refused(e.key)
	}
	e.write.End(err != nil)
}

// refused removes the floor: the writes of a pipeline were executed without their note. The callers
// of the writes wait meanwhile, so no hint of them is sent before.
func (j *Journal) refused(key string) {
	j.Fail(key)
	j.forget()
	ctx, cancel := context.WithTimeout(context.Background(), j.timeout)
	defer cancel()
	if j.client.ZRem(ctx, key, floorMember).Err() == nil {
		j.Removed(key)
	}
}

// failAll removes all floors: a pipeline is about to write to masters that are not known.
func (j *Journal) failAll(ctx context.Context) {
	j.mu.RLock()
	keys := j.keys
	j.mu.RUnlock()
	for _, key := range keys {
		if j.Fail(key); j.client.ZRem(ctx, key, floorMember).Err() == nil {
			j.Removed(key)
		}
	}
}

// raiseFloor raises a floor that is stored.
func raiseFloor(ctx context.Context, key string, floor uint64) redis.Cmder {
	return redis.NewIntCmd(ctx, "zadd", key, "xx", floorScore+floor, floorMember)
}

func removeEntries(ctx context.Context, key string, upTo uint64) redis.Cmder {
	return redis.NewIntCmd(ctx, "zremrangebyscore", key, "-inf", upTo)
}

// Describe returns the text for the lease of this server, which lists the keys of its notes. The
// first call decides the name in the keys: a process that takes a new id keeps them. It sends no
// command.
func (j *Journal) Describe(server string) string {
	ctx, cancel := context.WithTimeout(context.Background(), j.timeout)
	defer cancel()
	tags, err := j.wantedTags(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.server == "" {
		j.server = server
	}
	if err == nil {
		for _, tag := range tags {
			if len(j.tags) < maxTags && !slices.Contains(j.tags, tag) {
				j.tags = append(j.tags, tag)
				j.keys = append(slices.Clip(j.keys), key(j.prefix, tag, j.server))
			}
		}
	}
	return describe(j.tags, j.server)
}

// wantedTags returns a tag for each master that no tag is known for.
func (j *Journal) wantedTags(ctx context.Context) (tags []int, err error) {
	cluster, ok := j.client.(*redis.ClusterClient)
	if !ok {
		return []int{0}, nil
	}
	j.mu.RLock()
	known := j.tags
	j.mu.RUnlock()
	missing := make(map[string]bool)
	var mu sync.Mutex // guards missing
	err = cluster.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		missing[master.Options().Addr] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	take := func(tag int) error {
		master, err := cluster.MasterForKey(ctx, key("", tag, ""))
		if err != nil {
			return err
		}
		if addr := master.Options().Addr; missing[addr] {
			delete(missing, addr)
			tags = append(tags, tag)
		}
		return nil
	}
	for _, tag := range known {
		if err := take(tag); err != nil {
			return nil, err
		}
	}
	for tag := 0; len(missing) > 0 && tag < maxTag; tag++ {
		if err := take(tag); err != nil {
			return nil, err
		}
	}
	return tags, nil
}

// Beat begins to write notes under the keys that a lease lists, trims them and renews their TTL.
// listed is what Describe has returned.
func (j *Journal) Beat(ctx context.Context, listed string) error {
	tags, server, ok := parse(listed)
	if !ok {
		return nil
	}
	j.forget()
	for _, tag := range tags {
		if err := j.beatKey(ctx, key(j.prefix, tag, server)); err != nil {
			return fmt.Errorf("notes: %w", err)
		}
	}
	return nil
}

func (j *Journal) beatKey(ctx context.Context, key string) error {
	if !j.Ready(key) {
		return j.startKey(ctx, key)
	}
	var cmds []redis.Cmder
	if trim := j.Trim(key); trim != 0 {
		cmds = append(cmds, raiseFloor(ctx, key, trim), removeEntries(ctx, key, trim))
	}
	now := j.now()
	j.mu.RLock()
	due := now.Sub(j.renewed[key]) >= renewal
	j.mu.RUnlock()
	var floor *redis.StringCmd
	if due {
		floor = redis.NewStringCmd(ctx, "zscore", key, floorMember)
		cmds = append(cmds, floor, redis.NewBoolCmd(ctx, "pexpire", key, ttl.Milliseconds()))
	}
	if len(cmds) == 0 {
		return nil
	}
	err := j.send(ctx, cmds)
	if floor != nil && errors.Is(floor.Err(), redis.Nil) { // Redis has lost the key, or it has expired
		j.refused(key)
		return j.startKey(ctx, key)
	}
	if err == nil && due {
		j.setRenewed(key, now)
	}
	return err
}

// startKey begins to write notes under a key. First it makes the key, so that it has a TTL before
// the first note, with a floor that no reader is above.
func (j *Journal) startKey(ctx context.Context, key string) error {
	now := j.now()
	if err := j.send(ctx, []redis.Cmder{
		redis.NewIntCmd(ctx, "zadd", key, floorScore+maxNumber, floorMember),
		redis.NewBoolCmd(ctx, "pexpire", key, ttl.Milliseconds()),
	}); err != nil {
		return err
	}
	j.setRenewed(key, now)
	floor := j.Start(key)
	err := j.send(ctx, []redis.Cmder{redis.NewIntCmd(ctx, "zadd", key, floorScore+floor, floorMember)})
	if err != nil {
		j.refused(key)
	}
	return err
}

func (j *Journal) setRenewed(key string, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.renewed[key] = at
}

// send sends commands to one key in a pipeline of their own.
func (j *Journal) send(ctx context.Context, cmds []redis.Cmder) error {
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	pipeline := j.client.Pipeline()
	for _, cmd := range cmds {
		_ = pipeline.Process(ctx, cmd)
	}
	_, err := pipeline.Exec(ctx)
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return err
}
