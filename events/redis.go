package events

import (
	"embed"
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

// millis converts a duration to the argument of a script. It rounds a positive duration up to 1 ms,
// because zero has a meaning of its own.
func millis(d time.Duration) int64 {
	if d > 0 {
		return max(d.Milliseconds(), 1)
	}
	return d.Milliseconds()
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
