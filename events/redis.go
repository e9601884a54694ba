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
	scheduleScript    = redispipe.MustScript(luaFiles, "schedule")
	setDeadlineScript = redispipe.MustScript(luaFiles, "set_deadline")
	claimScript       = redispipe.MustScript(luaFiles, "claim")
	settleScript      = redispipe.MustScript(luaFiles, "settle", "append_event")
	takeScript        = redispipe.MustScript(luaFiles, "take")
	sentScript        = redispipe.MustScript(luaFiles, "sent")
	deadLetterScript  = redispipe.MustScript(luaFiles, "dead_letter")
	requeueScript     = redispipe.MustScript(luaFiles, "requeue", "append_letter")
	backlogScript     = redispipe.MustScript(luaFiles, "backlog")
	takeLetterScript  = redispipe.MustScript(luaFiles, "take_letter", "append_letter")

	scheduleFieldsScript = redispipe.MustScript(luaFiles, "schedule_fields")
	settleFieldsScript   = redispipe.MustScript(luaFiles, "settle_fields", "append_event")
)

var _ Store = (*Redis)(nil)

// Redis is a [Store] that processes share. Each call runs one script in one slot, except Schedule
// and ScheduleFields, which run one script per shard in a Redis Cluster.
type Redis struct {
	pipe   *redispipe.Pipe
	limits limits
	keys   keys
	ttl    int64 // Retention, ms

	schedule, scheduleFields *redispipe.BatchScript
}

// NewRedis returns a store that uses pipe. The options must be valid: call [StoreOptions.Validate]
// first.
func NewRedis(pipe *redispipe.Pipe, opts StoreOptions) *Redis {
	r := &Redis{pipe: pipe, limits: defaultLimits, keys: keys(opts.Prefix), ttl: Retention.Milliseconds()}
	r.schedule = &redispipe.BatchScript{Script: scheduleScript, Shared: []any{&r.limits.due, r.ttl}}
	r.scheduleFields = &redispipe.BatchScript{
		Script: scheduleFieldsScript, Shared: []any{&r.limits.fields, trackLookBack.Milliseconds(), r.ttl},
	}
	return r
}

// evalInt runs a script that returns an integer.
func (r *Redis) evalInt(ctx context.Context, script *redispipe.Script, keys []string, args ...any) (int64, error) {
	reply, err := r.pipe.Eval(ctx, script, keys, args...)
	if err != nil {
		return 0, err
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("unexpected reply of a script: %T, want an integer", reply)
	}
	return n, nil
}

// evalArray runs a script that returns an array.
func (r *Redis) evalArray(ctx context.Context, script *redispipe.Script, keys []string, args ...any) ([]any, error) {
	reply, err := r.pipe.Eval(ctx, script, keys, args...)
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("unexpected reply of a script: %T, want an array", reply)
	}
	return list, nil
}

// toStrings converts the elements of a reply. It returns nil if one is not a string.
func toStrings(list []any) []string {
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

// millis converts a duration to the argument of a script. It rounds a positive duration up to 1 ms,
// because zero has a meaning of its own.
func millis(d time.Duration) int64 {
	if d > 0 {
		return max(d.Milliseconds(), 1)
	}
	return d.Milliseconds()
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
