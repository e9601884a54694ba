package registry

import (
	"context"
	"embed"
	"slices"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	beatScript           = redispipe.MustScript(luaFiles, "beat")
	renewListedScript    = redispipe.MustScript(luaFiles, "renew_listed")
	endListedScript      = redispipe.MustScript(luaFiles, "end_listed")
	notifyStatesScript   = redispipe.MustScript(luaFiles, "notify_states")
	listAddScript        = redispipe.MustScript(luaFiles, "list_add")
	holdScript           = redispipe.MustScript(luaFiles, "hold")
	buryScript           = redispipe.MustScript(luaFiles, "bury")
	diedScript           = redispipe.MustScript(luaFiles, "died")
	declareDeadScript    = redispipe.MustScript(luaFiles, "declare_dead")
	changePresenceScript = redispipe.MustScript(luaFiles, "change_presence")
	bindUserScript       = redispipe.MustScript(luaFiles, "bind_user", "revoked")
	releaseUserScript    = redispipe.MustScript(luaFiles, "release_user")
	watchUserScript      = redispipe.MustScript(luaFiles, "watch_user")
	unwatchUserScript    = redispipe.MustScript(luaFiles, "unwatch_user")
	revokeScript         = redispipe.MustScript(luaFiles, "revoke")
	subscribeScript      = redispipe.MustScript(luaFiles, "subscribe", "subscription_list")
	subscriptionsScript  = redispipe.MustScript(luaFiles, "subscriptions", "subscription_list")
	spendScript          = redispipe.MustScript(luaFiles, "spend")
	listRevokedScript    = redispipe.MustScript(luaFiles, "list_revoked")
	checkTokenScript     = redispipe.MustScript(luaFiles, "check_token", "revoked")
	forgetUserScript     = redispipe.MustScript(luaFiles, "forget_user")
)

// Redis is the registry that several servers share. Its methods are safe for concurrent use, and
// concurrent calls share round trips.
type Redis struct {
	pipe *redispipe.Pipe
	opts Options
	keys keys
	// cluster is whether the list of channels is the sets ch_list_{N}.
	cluster bool
	// listForFormer is whether binds in a Cluster also write ch_list, see KeepChannelList.
	listForFormer atomic.Bool

	dropClient    redispipe.Coalescer
	bindChannel   redispipe.Coalescer
	unbindChannel redispipe.Coalescer
	bindUsers     *redispipe.BatchScript
	watchUsers    *redispipe.BatchScript
	checkTokens   *redispipe.BatchScript
	revoke        *redispipe.BatchScript
	revokeDurably *redispipe.BatchScript
	spend         *redispipe.BatchScript
	subscriptions *redispipe.BatchScript
}

// NewRedis returns a registry over pipe. opts must be valid, see [Options.Validate].
func NewRedis(pipe *redispipe.Pipe, opts Options) *Redis {
	r := &Redis{pipe: pipe, opts: opts.withDefaults(), keys: keys(opts.Prefix), cluster: pipe.Cluster()}
	r.listForFormer.Store(true)
	r.dropClient.Call = func(ctx context.Context, server string, clients []string) error {
		_, err := r.count(ctx, append([]any{"srem", r.keys.heldClients(server)}, anys(clients)...)...)
		return err
	}
	r.bindUsers = &redispipe.BatchScript{
		Script: bindUserScript, Shared: []any{r.opts.UserTTL.Milliseconds(), MaxClients, r.opts.MaxOnline},
	}
	r.watchUsers = &redispipe.BatchScript{Script: watchUserScript, Shared: []any{r.opts.UserTTL.Milliseconds()}}
	r.checkTokens = &redispipe.BatchScript{Script: checkTokenScript}
	r.subscriptions = &redispipe.BatchScript{
		Script: subscriptionsScript, Shared: []any{r.opts.SubscribedTTL.Milliseconds(), MaxSubscriptions},
	}
	r.spend = &redispipe.BatchScript{Script: spendScript}
	r.revoke = &redispipe.BatchScript{Script: revokeScript, Shared: []any{r.opts.RevokedTTL.Milliseconds()}}
	durable := *r.revoke
	durable.Durable = true
	r.revokeDurably = &durable
	r.bindChannel.Call, r.unbindChannel.Call = r.bindChannels, r.unbindChannels
	return r
}

// count runs a command that returns an integer.
func (r *Redis) count(ctx context.Context, args ...any) (int64, error) {
	cmd := redis.NewIntCmd(ctx, args...)
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return 0, err
	}
	return cmd.Val(), nil
}

// names runs a command that returns names, and sorts them.
func (r *Redis) names(ctx context.Context, args ...any) ([]string, error) {
	cmd := redis.NewStringSliceCmd(ctx, args...)
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return nil, err
	}
	names := cmd.Val()
	slices.Sort(names)
	return names, nil
}

// fields reads a hash.
func (r *Redis) fields(ctx context.Context, key string) (map[string]string, error) {
	cmd := redis.NewMapStringStringCmd(ctx, "hgetall", key)
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}
