package events

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"time"

	"switchboard/internal/redispipe"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	changedScript = redispipe.MustScript(luaFiles, "changed")
	watchScript   = redispipe.MustScript(luaFiles, "watch")
	claimScript   = redispipe.MustScript(luaFiles, "claim")
	settleScript  = redispipe.MustScript(luaFiles, "settle")
	takeScript    = redispipe.MustScript(luaFiles, "take")
	sentScript    = redispipe.MustScript(luaFiles, "sent")
	giveupScript  = redispipe.MustScript(luaFiles, "giveup")
	retryScript   = redispipe.MustScript(luaFiles, "retry")
)

var _ Store = (*Redis)(nil)

// Redis is the [Store] that processes share. Each call is one script in one slot, and Changed one
// for each shard.
type Redis struct {
	pipe   *redispipe.Pipe
	bounds bounds
	keys   keys
	ttl    int64 // Retention, ms

	changed *redispipe.Group
}

// NewRedis returns a store behind pipe. opts have passed [StoreOptions.Validate].
func NewRedis(pipe *redispipe.Pipe, opts StoreOptions) *Redis {
	r := &Redis{pipe: pipe, bounds: defaultBounds, keys: keys(opts.Prefix), ttl: Retention.Milliseconds()}
	r.changed = &redispipe.Group{Script: changedScript, Shared: []any{&r.bounds.due, r.ttl}}
	return r
}

// eval runs a script that answers with an integer.
func (r *Redis) eval(ctx context.Context, script *redispipe.Script, keys []string, args ...any) (int64, error) {
	answer, err := r.pipe.Eval(ctx, script, keys, args...)
	if err != nil {
		return 0, err
	}
	n, ok := answer.(int64)
	if !ok {
		return 0, fmt.Errorf("unexpected reply of a script: %T is no integer", answer)
	}
	return n, nil
}

// array runs a script that answers with an array.
func (r *Redis) array(ctx context.Context, script *redispipe.Script, keys []string, args ...any) ([]any, error) {
	answer, err := r.pipe.Eval(ctx, script, keys, args...)
	if err != nil {
		return nil, err
	}
	list, ok := answer.([]any)
	if !ok {
		return nil, fmt.Errorf("unexpected reply of a script: %T is no array", answer)
	}
	return list, nil
}

// texts are the elements of a reply; nil when one is no text.
func texts(list []any) []string {
	out := make([]string, len(list))
	for i, v := range list {
		text, ok := v.(string)
		if !ok {
			return nil
		}
		out[i] = text
	}
	return out
}

// millis is d as a script takes it: not zero, which means something of its own, unless d is.
func millis(d time.Duration) int64 {
	if d > 0 {
		return max(d.Milliseconds(), 1)
	}
	return d.Milliseconds()
}

// decimal is a place as a script compares it.
func decimal(n int64) string { return strconv.FormatInt(n, 10) }
