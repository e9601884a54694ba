package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

// interrupt is a hook that calls run once, before the command is sent: between two steps of one
// call.
type interrupt struct {
	command, key string
	run          func()
}

func (i *interrupt) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (i *interrupt) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (i *interrupt) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, c := range commands {
			if i.run != nil && c.Name() == i.command && c.Args()[1] == i.key {
				run := i.run
				i.run = nil
				run()
			}
		}
		return next(ctx, commands)
	}
}

// interrupted returns a registry that calls run before it sends the command, and another registry
// over the same keys, without that hook.
func interrupted(t *testing.T, command string, key func(keys) string, run func(plain *Redis)) (r, plain *Redis) {
	plain = newRedis(single.Client(t))
	client := single.Client(t)
	client.AddHook(&interrupt{command: command, key: key(plain.keys), run: func() { run(plain) }})
	r = newRedis(client)
	r.keys = plain.keys
	return r, plain
}

// trips is a hook that collects the number of commands of each round trip.
type trips []int

func (*trips) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (n *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		*n = append(*n, len(commands))
		return next(ctx, commands)
	}
}

func TestUsersTakesOneRoundTrip(t *testing.T) {
	var n trips
	client := single.Client(t)
	client.AddHook(&n)
	users := make([]string, 1000)
	for i := range users {
		users[i] = fmt.Sprint("user-", i)
	}
	r := newRedis(client)
	_, err := r.User(t.Context(), "ann") // connects
	ok(t, err)
	n = nil
	found, err := r.Users(t.Context(), users)
	if err != nil || len(found) != 1000 || !slices.Equal(n, []int{1000}) {
		t.Errorf("%d users, %v, round trips of %v commands", len(found), err, n)
	}
}

func TestUnbindRelistsAChannelBoundMeanwhile(t *testing.T) {
	r, plain := interrupted(t, "srem", keys.channelList, func(plain *Redis) {
		ok(t, plain.BindChannel(t.Context(), "b", "news"))
	})
	ok(t, r.BindChannel(t.Context(), "a", "news"))
	ok(t, r.UnbindChannel(t.Context(), "a", "news"))
	want(t, []string{"news"})(allChannels(t, plain, "", 10), nil)
	want(t, []string{"b"})(plain.ChannelServers(t.Context(), "news"))
}

func TestBindChannelRevertsIfTheServerIsDeclaredDead(t *testing.T) {
	ctx := t.Context()
	channel := func(k keys) string { return k.channel("news") }
	r, plain := interrupted(t, "sadd", channel, func(plain *Redis) {
		want(t, true)(plain.DeclareDead(ctx, "a"))
		ok(t, plain.UnbindChannel(ctx, "a", "news"))
		ok(t, plain.Forget(ctx, "a"))
	})
	fails(t, r.BindChannel(ctx, "a", "news"), ErrDead)
	want(t, []string(nil))(plain.ChannelServers(ctx, "news"))
	want(t, []string(nil))(allChannels(t, plain, "", 10), nil)
}

// TestBindChannelsFailsForOneChannel checks that an error of one channel does not affect the
// others.
func TestBindChannelsFailsForOneChannel(t *testing.T) {
	ctx := t.Context()
	client := single.Client(t)
	r := newRedis(client)
	ok(t, client.Set(ctx, r.keys.channel("odd"), "not a set", 0).Err())
	failed, is := r.bindChannels(ctx, "a", []string{"x", "odd", "y"}).(redispipe.Failed)
	if !is || len(failed) != 1 || failed["odd"] == nil {
		t.Errorf("failed: %v", failed)
	}
	want(t, []string{"a"})(r.ChannelServers(ctx, "y"))
	want(t, []string{"x", "y"})(allChannels(t, r, "", 10), nil)
	want(t, []string{"odd", "x", "y"})(r.HeldChannels(ctx, "a", 10))
	failed, is = r.unbindChannels(ctx, "a", []string{"x", "odd", "y"}).(redispipe.Failed)
	if !is || len(failed) != 1 || failed["odd"] == nil {
		t.Errorf("failed: %v", failed)
	}
	want(t, []string{"odd"})(r.HeldChannels(ctx, "a", 10))
	want(t, []string(nil))(allChannels(t, r, "", 10), nil)
	want(t, []string(nil))(r.ChannelServers(ctx, "x"))
}

func TestBindChannelsRevertsIfTheServerIsDeclaredDead(t *testing.T) {
	ctx := t.Context()
	r, plain := interrupted(t, "sadd", func(k keys) string { return k.channel("y") }, func(plain *Redis) {
		want(t, true)(plain.DeclareDead(ctx, "a"))
		ok(t, plain.unbindChannels(ctx, "a", []string{"x", "y"}))
		ok(t, plain.Forget(ctx, "a"))
	})
	failed, is := r.bindChannels(ctx, "a", []string{"x", "y"}).(redispipe.Failed)
	if !is || !errors.Is(failed["x"], ErrDead) || !errors.Is(failed["y"], ErrDead) {
		t.Errorf("failed: %v", failed)
	}
	for _, channel := range []string{"x", "y"} {
		want(t, []string(nil))(plain.ChannelServers(ctx, channel))
	}
	want(t, []string(nil))(allChannels(t, plain, "", 10), nil)
}

func TestRepeatingRestoresWhatAFailoverLost(t *testing.T) {
	ctx := t.Context()
	client := single.Client(t)
	r := newRedis(client)
	announce := func() {
		ok(t, r.Beat(ctx, Server{ID: "a"}))
		ok(t, r.BindChannel(ctx, "a", "news"))
	}
	announce()
	for _, key := range []string{
		r.keys.serverList(), r.keys.listEnds(), r.keys.listAbout(), r.keys.lease("a"), r.keys.heldChannels("a"), r.keys.channel("news"), r.keys.channelList(),
	} {
		ok(t, client.Del(ctx, key).Err())
		announce()
		want(t, int64(1))(client.Exists(ctx, key).Result())
	}
}

func TestPruneChannelRemovesAnUnusedChannel(t *testing.T) {
	client := single.Client(t)
	r := newRedis(client)
	ok(t, client.SAdd(t.Context(), r.keys.channelList(), "stale").Err())
	want(t, true)(r.PruneChannel(t.Context(), "stale"))
	want(t, false)(r.PruneChannel(t.Context(), "stale"))
	want(t, []string(nil))(allChannels(t, r, "", 10), nil)
}

func TestPruneChannelKeepsAChannelInUse(t *testing.T) {
	r, _ := interrupted(t, "srem", keys.channelList, func(*Redis) {
		t.Error("the channel was briefly out of the list")
	})
	ok(t, r.BindChannel(t.Context(), "a", "news"))
	want(t, false)(r.PruneChannel(t.Context(), "news"))
}

func TestChannelsRefusesAForeignCursor(t *testing.T) {
	_, _, err := newRedis(single.Client(t)).Channels(t.Context(), "", "news", 10)
	fails(t, err, ErrBadCursor)
}

func TestMalformedEntriesAreSkippedAndEvicted(t *testing.T) {
	ctx := t.Context()
	client := single.Client(t)
	r := newRedis(client)
	for i := range MaxClients - 1 {
		ok(t, bindUser(ctx, r, "ann", Binding{string(rune('A' + i)), "a", 1}))
	}
	ok(t, client.HSet(ctx, r.keys.user("ann"), "odd", "no generation").Err())
	bindings, err := r.User(ctx, "ann")
	want(t, MaxClients-1)(len(bindings), err)
	ok(t, bindUser(ctx, r, "ann", Binding{"new", "a", 2}))
	want(t, false)(client.HExists(ctx, r.keys.user("ann"), "odd").Result())
}

// TestEveryKeyIsKnownAndBounded compares the keys and TTLs in Redis with the table in doc.go.
func TestEveryKeyIsKnownAndBounded(t *testing.T) {
	ctx := t.Context()
	client := single.Client(t)
	r := newRedis(client)
	ok(t, r.Join(ctx, Server{ID: "a"}))
	ok(t, r.BindChannel(ctx, "a", "news"))
	ok(t, r.HoldClients(ctx, "a", []string{"phone"}))
	ok(t, bindUser(ctx, r, "ann", Binding{"phone", "a", 1}))
	want(t, true)(r.DeclareDead(ctx, "gone"))

	o := r.opts
	ttl := map[string]time.Duration{
		"s_list": -1, "s_{a}": o.Lease, "s_ch_{a}": -1, "s_c_{a}": -1, "s_dead_{gone}": o.TombstoneTTL,
		"s_ends_{servers}": -1, "s_changes_{servers}": -1, "s_about_{servers}": -1,
		"u_{ann}": o.UserTTL, "ch_list": -1, "ch_{news}": -1,
	}
	found, err := client.Keys(ctx, string(r.keys)+"*").Result()
	want(t, len(ttl))(len(found), err)
	for name, most := range ttl {
		got, err := client.PTTL(ctx, string(r.keys)+name).Result()
		ok(t, err)
		if (most < 0) != (got == -1) || got > most || got == 0 || got == -2 {
			t.Errorf("%s has TTL %v, want up to %v", name, got, most)
		}
	}
}

// TestUnwatchedUsersCostNothing checks that a bind of a user costs the same commands as without
// watchers and subscriptions: those in the script are one look for both.
func TestUnwatchedUsersCostNothing(t *testing.T) {
	client := redistest.Start(t).Client(t)
	r := newRedis(client)
	bind := func() (commands int) {
		t.Helper()
		ok(t, bindUser(t.Context(), r, "ann", Binding{"phone", "a", 1}))
		before := commandsOf(t, client)
		ok(t, bindUser(t.Context(), r, "ann", Binding{"phone", "a", 1}))
		return commandsOf(t, client) - before
	}
	// EVALSHA, HGET, HSET, PEXPIRE, EXISTS, and the look for revoked tokens.
	if n := bind(); n != 6 {
		t.Errorf("a bind is %d commands, want 6", n)
	}
	ok(t, r.WatchUsers(t.Context(), "b", []string{"ann"})[0].Err)
	if n := bind(); n != 8 {
		t.Errorf("a bind of a watched user is %d commands, want 8", n)
	}
}

// TestFullRedis checks that a full Redis accepts beats, tombstones, and calls that free memory.
func TestFullRedis(t *testing.T) {
	ctx := t.Context()
	client := redistest.Start(t).Client(t)
	r := newRedis(client)
	ok(t, r.BindChannel(ctx, "a", "news"))
	ok(t, bindUser(ctx, r, "ann", Binding{"phone", "a", 1}))
	ok(t, r.HoldClients(ctx, "a", []string{"phone"}))
	ok(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
	ok(t, client.ScriptFlush(ctx).Err())

	ok(t, r.Join(ctx, Server{ID: "a"}))
	ok(t, r.Beat(ctx, Server{ID: "a"}))
	want(t, true)(r.DeclareDead(ctx, "gone"))
	ok(t, releaseUser(ctx, r, "ann", "phone", 1))
	ok(t, r.ForgetUser(ctx, "ann", "phone", 1))
	ok(t, r.UnbindChannel(ctx, "a", "news"))
	ok(t, r.DropClient(ctx, "a", "phone"))
	if err := r.BindChannel(ctx, "a", "more"); err == nil {
		t.Error("a full Redis accepted a binding: this test proves nothing")
	}
	ok(t, r.Forget(ctx, "a"))
}
