package budget

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"slices"
	"sync"
	"time"

	"switchboard/internal/redispipe"
)

// Store stores which objects are charged to which owner. [Redis] and [Memory] implement it.
type Store interface {
	// charge charges an object, unless the owner has the most objects. It may be charged already. ttl
	// is how long the record of the owner is kept; 0 means until it is empty.
	charge(ctx context.Context, owner, kind, object string, most int, ttl time.Duration) (outcome, error)
	// charged returns the objects that were charged at least age ago, the oldest first. most is how
	// many; 0 means all.
	charged(ctx context.Context, owner, kind string, age time.Duration, most int) ([]string, error)
	// postpone makes objects as old as if they had been charged age ago, unless they are newer.
	postpone(ctx context.Context, owner, kind string, age time.Duration, objects ...string) error
	// release returns objects to the budget.
	release(ctx context.Context, owner, kind string, objects ...string) error
}

// outcome is the result of a charge.
type outcome int64

const (
	spent outcome = -1
	known outcome = 0
	added outcome = 1
)

// keep is how long the record of an owner is kept after the last charge, unless Options.Endless.
const keep = 30 * 24 * time.Hour

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	chargeScript   = redispipe.MustScript(luaFiles, "charge")
	chargedScript  = redispipe.MustScript(luaFiles, "charged")
	postponeScript = redispipe.MustScript(luaFiles, "postpone")
	releaseScript  = redispipe.MustScript(luaFiles, "release")
)

var (
	_ Store = (*Redis)(nil)
	_ Store = (*Memory)(nil)
)

// Redis is a [Store] that processes share.
type Redis struct {
	pipe   *redispipe.Pipe
	prefix string
}

// NewRedis returns the store in Redis. prefix is the prefix of all keys.
func NewRedis(pipe *redispipe.Pipe, prefix string) *Redis { return &Redis{pipe, prefix} }

// eval runs a script with the record of an owner.
func (r *Redis) eval(ctx context.Context, script *redispipe.Script, owner, kind string, args ...any) (any, error) {
	return r.pipe.Eval(ctx, script, []string{r.prefix + "bu_{" + owner + "}:" + kind}, args...)
}

func (r *Redis) charge(ctx context.Context, owner, kind, object string, most int, ttl time.Duration) (outcome, error) {
	reply, err := r.eval(ctx, chargeScript, owner, kind, object, most, ttl.Milliseconds())
	if err != nil {
		return 0, err
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("budget: unexpected reply of charge: %v", reply)
	}
	return outcome(n), nil
}

func (r *Redis) charged(ctx context.Context, owner, kind string, age time.Duration, most int) ([]string, error) {
	reply, err := r.eval(ctx, chargedScript, owner, kind, age.Milliseconds(), cmp.Or(most, -1))
	if err != nil {
		return nil, err
	}
	words, _ := reply.([]any)
	objects := make([]string, len(words))
	for i, word := range words {
		objects[i], _ = word.(string)
	}
	return objects, nil
}

func (r *Redis) postpone(ctx context.Context, owner, kind string, age time.Duration, objects ...string) error {
	_, err := r.eval(ctx, postponeScript, owner, kind, arguments(objects, age.Milliseconds())...)
	return err
}

func (r *Redis) release(ctx context.Context, owner, kind string, objects ...string) error {
	_, err := r.eval(ctx, releaseScript, owner, kind, arguments(objects)...)
	return err
}

// arguments returns the arguments of a script: the first ones, and then the ids of objects.
func arguments(objects []string, first ...any) []any {
	args := slices.Grow(first, len(objects))
	for _, object := range objects {
		args = append(args, object)
	}
	return args
}

// Memory is a [Store] in this process.
type Memory struct {
	mu    sync.Mutex // guards the field below
	lists map[account]map[string]time.Time
}

// account is the objects of one kind of an owner.
type account struct{ owner, kind string }

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{lists: map[account]map[string]time.Time{}} }

func (m *Memory) charge(_ context.Context, owner, kind, object string, most int, _ time.Duration) (outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.lists[account{owner, kind}]
	_, found := list[object]
	switch {
	case !found && len(list) >= most:
		return spent, nil
	case list == nil:
		list = map[string]time.Time{}
		m.lists[account{owner, kind}] = list
	}
	list[object] = time.Now()
	if found {
		return known, nil
	}
	return added, nil
}

func (m *Memory) charged(_ context.Context, owner, kind string, age time.Duration, most int) (objects []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.lists[account{owner, kind}]
	for object, at := range list {
		if time.Since(at) >= age {
			objects = append(objects, object)
		}
	}
	slices.SortFunc(objects, func(a, b string) int { return list[a].Compare(list[b]) })
	if most > 0 && len(objects) > most {
		objects = objects[:most]
	}
	return objects, nil
}

func (m *Memory) postpone(_ context.Context, owner, kind string, age time.Duration, objects ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, then := m.lists[account{owner, kind}], time.Now().Add(-age)
	for _, object := range objects {
		if at, charged := list[object]; charged && at.Before(then) {
			list[object] = then
		}
	}
	return nil
}

func (m *Memory) release(_ context.Context, owner, kind string, objects ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.lists[account{owner, kind}]
	for _, object := range objects {
		delete(list, object)
	}
	if len(list) == 0 {
		delete(m.lists, account{owner, kind})
	}
	return nil
}
