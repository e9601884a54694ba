package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/slots"
)

// perSlot is a hook that counts commands by the slot of their first key.
type perSlot map[int]int

func (perSlot) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (perSlot) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (n perSlot) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, c := range commands {
			at := 1
			if strings.HasPrefix(c.Name(), "eval") {
				at = 3
			}
			n[slots.OfKey(c.Args()[at].(string))]++
		}
		return next(ctx, commands)
	}
}

// TestRebindAsksOneMaster checks that the calls that restore what a master has lost send commands
// to this master, and to the master of the server, and to no other: a failover concerns only its
// slots.
func TestRebindAsksOneMaster(t *testing.T) {
	const masters = 3
	masterOf := func(slot int) int { return slot * masters / slots.Count }
	ctx := t.Context()
	client := cluster.Client(t)
	n := perSlot{}
	client.AddHook(n)
	r := newRedis(client)
	r.KeepChannelList(false)
	all := names("room", 300)
	ok(t, errors.Join(r.BindChannels(ctx, "a", all)...))
	server := masterOf(slots.OfKey(r.keys.lease("a")))
	for master := range masters {
		var of slots.Set
		for slot := range slots.Count {
			if masterOf(slot) == master {
				of.Add(slot, slot)
			}
		}
		var own, listed []string
		for _, channel := range all {
			if of.HasName(channel) {
				own = append(own, channel)
			}
			if r.ListedIn(channel, &of) {
				listed = append(listed, channel)
			}
		}
		for name, c := range map[string]struct {
			call     func() error
			concerns int // the most commands for this master, without those for the server's entry
		}{
			"bind": {func() error {
				_, errs := r.RebindChannels(ctx, "a", own, none)
				return errors.Join(errs...)
			}, len(own)},
			"list": {func() error { return r.ListChannels(ctx, "a", listed) }, channelSets},
			"hold": {func() error { return r.HoldChannels(ctx, "a", all) }, 0},
		} {
			clear(n)
			ok(t, c.call())
			var sums [masters]int
			for slot, commands := range n {
				sums[masterOf(slot)] += commands
			}
			// Three or fewer for each call with up to 256 names: a script, and a check of the tombstone.
			if sums[server] == 0 {
				t.Errorf("master %d, %s: no command for the server's entry", master, name)
			}
			sums[server] -= min(sums[server], 6)
			if got := sums[master]; got > c.concerns || c.concerns > 0 && got == 0 {
				t.Errorf("master %d, %s: %d commands for it, want 1 to %d", master, name, got, c.concerns)
			}
			sums[master] = 0
			if sums != [masters]int{} {
				t.Errorf("master %d, %s: commands for other masters: %v", master, name, sums)
			}
		}
	}
}

// none is the argument of RebindChannels for channels of which the list of channels has all.
func none(string) bool { return false }

// TestRebindWritesTheListsInDoubt checks that binding channels again writes only the sets of the
// list of channels that have those that are in doubt.
func TestRebindWritesTheListsInDoubt(t *testing.T) {
	ctx := t.Context()
	client := cluster.Client(t)
	n := perSlot{}
	r := newRedis(client)
	r.KeepChannelList(false)
	channels := names("doubt", 300)
	ok(t, errors.Join(r.BindChannels(ctx, "a", channels)...))
	client.AddHook(n)
	for _, doubted := range [][]string{nil, channels[7:8]} {
		clear(n)
		_, errs := r.RebindChannels(ctx, "a", channels, func(channel string) bool { return slices.Contains(doubted, channel) })
		ok(t, errors.Join(errs...))
		for _, channel := range channels { // the SADD in ch_, which may have the slot of another channel
			n[slots.Of(channel)]--
		}
		written := 0
		for set := range channelSets {
			written += n[slots.OfKey(r.keys.channelSet(set))]
		}
		if written != len(doubted) {
			t.Errorf("%d channels are in doubt, and %d sets of the list are written", len(doubted), written)
		}
	}
}
