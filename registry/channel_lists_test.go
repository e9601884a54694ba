package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/slots"
)

// onCluster returns a registry in the Cluster that writes only the sets, and a server of a former
// version, which is not listed.
func onCluster(t *testing.T) (r *Redis, old former) {
	client := cluster.Client(t)
	r = newRedis(client)
	r.KeepChannelList(false)
	return r, former{t, client, string(r.keys), "old"}
}

// names returns n names.
func names(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s-%04d", prefix, i))
	}
	return list
}

// keysOf returns the keys of the list of channels that exist.
func keysOf(t *testing.T, r *Redis) (found []string) {
	t.Helper()
	for key, err := range r.pipe.Keys(t.Context(), string(r.keys)+"ch_list*") {
		ok(t, err)
		found = append(found, strings.TrimPrefix(key, string(r.keys)))
	}
	slices.Sort(found)
	return found
}

// TestSpread checks that 10,000 names of usual kinds are spread evenly over the sets, and the sets
// over the slots.
func TestSpread(t *testing.T) {
	for _, format := range []string{"channel-%d", "room:%05d", "game:%d:chat", "%x"} {
		var sets [channelSets]int
		for i := range 10_000 {
			sets[setOf(fmt.Sprintf(format, i))]++
		}
		least, most := slices.Min(sets[:]), slices.Max(sets[:])
		t.Logf("%s: %d to %d names, in the mean %d", format, least, most, 10_000/channelSets)
		if least < 100 || most > 220 {
			t.Errorf("%s: %d to %d names", format, least, most)
		}
	}
	seen := map[int]bool{}
	for n := range channelSets {
		seen[slots.OfKey(keys("").channelSet(n))] = true
	}
	if len(seen) != channelSets {
		t.Errorf("the sets are in %d slots", len(seen))
	}
}

// TestChannelSets checks in which keys of a Cluster channels are, and that no key stays after the
// last unbind.
func TestChannelSets(t *testing.T) {
	ctx := t.Context()
	r, _ := onCluster(t)
	list := names("room", 300)
	want(t, error(nil))(errors.Join(r.BindChannels(ctx, "a", list)...), nil)
	for _, name := range list {
		key := r.keys.channelSet(slots.Of(name) % 64)
		if member, err := cluster.Client(t).SIsMember(ctx, key, name).Result(); err != nil || !member {
			t.Fatalf("%s is in %s: %t, %v", name, key, member, err)
		}
	}
	if found := keysOf(t, r); len(found) != 64 || slices.Contains(found, "ch_list") {
		t.Errorf("the keys are %v", found)
	}
	for _, name := range list {
		ok(t, r.UnbindChannel(ctx, "a", name))
	}
	want(t, []string(nil))(keysOf(t, r), nil)
}

// TestSingleHasOneList checks that nothing writes sets on a single Redis.
func TestSingleHasOneList(t *testing.T) {
	r := newRedis(single.Client(t))
	for _, keep := range []bool{true, false} {
		r.KeepChannelList(keep)
		ok(t, r.BindChannel(t.Context(), "a", "news"))
		ok(t, r.ListChannels(t.Context(), "a", []string{"news"}))
		want(t, 0)(r.MoveChannelList(t.Context()))
		want(t, []string{"ch_list"})(keysOf(t, r), nil)
	}
	of := slots.Set{}
	of.Add(slots.Of(r.keys.channelList()), slots.Of(r.keys.channelList()))
	if !r.ListedIn("news", &of) {
		t.Error("the channel is not listed in the slot of ch_list")
	}
}

// TestListedInSet checks which channels a failover of one slot concerns.
func TestListedInSet(t *testing.T) {
	r, _ := onCluster(t)
	for n := range channelSets {
		of := slots.Set{}
		slot := slots.OfKey(r.keys.channelSet(n))
		of.Add(slot, slot)
		for _, name := range names("room", 300) {
			if r.ListedIn(name, &of) != (setOf(name) == n) {
				t.Fatalf("%s is in set %d, and is listed in slot of set %d: %t", name, setOf(name), n, r.ListedIn(name, &of))
			}
		}
	}
	of := slots.Set{}
	slot := slots.Of(r.keys.channelList())
	of.Add(slot, slot)
	if r.ListedIn("room-0001", &of) {
		t.Error("a channel is listed in ch_list")
	}
	if r.KeepChannelList(true); !r.ListedIn("room-0001", &of) {
		t.Error("beside a former version, a channel is not listed in ch_list")
	}
}

// TestBindCommands counts the commands of a bind and an unbind.
func TestBindCommands(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		name         string
		client       redis.UniversalClient
		keep         bool
		bind, unbind int
	}{
		{"single", single.Client(t), true, 4, 7},
		{"cluster", cluster.Client(t), false, 4, 8},
		{"cluster beside a former version", cluster.Client(t), true, 5, 8},
	} {
		var n trips
		c.client.AddHook(&n)
		r := newRedis(c.client)
		r.KeepChannelList(c.keep)
		count := func(call func(ctx context.Context, server, channel string) error, channel string) (sum int) {
			n = nil
			ok(t, call(ctx, "a", channel))
			for _, commands := range n {
				sum += commands
			}
			return sum
		}
		count(r.BindChannel, "first") // loads scripts
		if got := count(r.BindChannel, "news"); got != c.bind {
			t.Errorf("%s: a bind is %d commands, want %d", c.name, got, c.bind)
		}
		if got := count(r.UnbindChannel, "news"); got != c.unbind {
			t.Errorf("%s: an unbind is %d commands, want %d", c.name, got, c.unbind)
		}
	}
}

// TestMixedVersions checks that former and new servers and janitors see the channels of each other,
// and that no entry stays.
func TestMixedVersions(t *testing.T) {
	for _, can := range []string{"", "changes"} {
		ctx := t.Context()
		r, old := onCluster(t)
		r.KeepChannelList(true)
		old.join(can)
		ok(t, r.Join(ctx, Server{ID: "new"}))
		ok(t, errors.Join(r.BindChannels(ctx, "new", []string{"mine", "both", "old leaves first"})...))
		old.bind("theirs", "both", "old leaves first")
		all := []string{"both", "mine", "old leaves first", "theirs"}
		want(t, all)(old.channels(), nil)
		want(t, all)(pagesOf(t, r, "", 2), nil)
		want(t, 0)(r.MoveChannelList(ctx))
		want(t, all)(old.channels(), nil)

		old.unbind("old leaves first", "theirs")
		old.prune("mine")
		want(t, []string{"both", "mine", "old leaves first"})(old.channels(), nil)
		want(t, []string{"both", "mine", "old leaves first"})(pagesOf(t, r, "", 2), nil)
		ok(t, r.UnbindChannel(ctx, "new", "old leaves first"))
		ok(t, r.UnbindChannel(ctx, "new", "mine"))
		ok(t, r.UnbindChannel(ctx, "new", "both"))
		want(t, []string{"both"})(old.channels(), nil)
		want(t, []string{"both"})(pagesOf(t, r, "", 2), nil)

		// The former server removes it only from the list that it knows. The new janitor does the rest.
		old.unbind("both")
		want(t, []string(nil))(old.channels(), nil)
		want(t, []string{"both"})(pagesOf(t, r, "", 2), nil)
		want(t, true)(r.PruneChannel(ctx, "both"))
		want(t, []string(nil))(keysOf(t, r), nil)

		// A new server cleans up after a former one that was killed.
		old.bind("killed")
		ok(t, r.UnbindChannel(ctx, "old", "killed"))
		want(t, []string(nil))(keysOf(t, r), nil)
	}
}

// TestMoveChannelList checks that the janitor moves what is in ch_list after the last server of a
// former version has left, and not before.
func TestMoveChannelList(t *testing.T) {
	ctx := t.Context()
	r, old := onCluster(t)
	r.KeepChannelList(true)
	old.join("changes")
	ok(t, r.Join(ctx, Server{ID: "new"}))
	theirs := names("old", 1200)
	old.bind(theirs...)
	ok(t, errors.Join(r.BindChannels(ctx, "new", theirs[:700])...))
	mine := names("new", 300)
	ok(t, errors.Join(r.BindChannels(ctx, "new", mine)...))
	all := slices.Sorted(slices.Values(append(slices.Clone(theirs), mine...)))
	want(t, all)(pagesOf(t, r, "", 100), nil)
	want(t, 0)(r.MoveChannelList(ctx))

	ok(t, old.client.Del(ctx, old.prefix+"s_{old}").Err()) // it is suspended, or dead
	want(t, 0)(r.MoveChannelList(ctx))
	want(t, all)(old.channels(), nil)

	old.leave()
	want(t, 1500)(r.MoveChannelList(ctx))
	want(t, all)(pagesOf(t, r, "", 100), nil)
	want(t, 0)(r.MoveChannelList(ctx))
	if found := keysOf(t, r); len(found) != channelSets || slices.Contains(found, "ch_list") {
		t.Errorf("the keys are %v", found)
	}
}

// TestMoveStopsForAFormerVersion checks that no further names are moved after a server of a former
// version has started.
func TestMoveStopsForAFormerVersion(t *testing.T) {
	ctx := t.Context()
	client := cluster.Client(t)
	r := newRedis(client)
	old := former{t, cluster.Client(t), string(r.keys), "old"}
	ok(t, r.Join(ctx, Server{ID: "new"}))
	ok(t, errors.Join(r.BindChannels(ctx, "new", names("room", 2000))...))
	client.AddHook(&interrupt{command: "srem", key: r.keys.channelList(), run: func() { old.join("") }})
	moved, err := r.MoveChannelList(ctx)
	if err != nil || moved < 400 || moved > 700 {
		t.Errorf("moved %d, %v", moved, err)
	}
	want(t, 2000)(len(pagesOf(t, r, "", 100)), nil)
	want(t, 2000-moved)(len(old.channels()), nil)
}

// TestMovedChannelIsNotMissed checks that a reader sees a channel that is moved between two pages.
func TestMovedChannelIsNotMissed(t *testing.T) {
	ctx := t.Context()
	r, old := onCluster(t)
	old.bind(names("room", 1000)...)
	found, next, err := r.Channels(ctx, "", "", 100)
	if err != nil || len(found) < 100 || len(found) > 200 || strings.Contains(next, ":") {
		t.Fatalf("%d names, next %q, %v", len(found), next, err)
	}
	want(t, 1000)(r.MoveChannelList(ctx))
	for next != "" {
		var more []string
		more, next, err = r.Channels(ctx, "", next, 100)
		ok(t, err)
		found = append(found, more...)
	}
	slices.Sort(found)
	want(t, names("room", 1000))(slices.Compact(found), nil)
}

// TestMoveDuringUnbind checks that the janitor removes a channel that was unbound while it was
// moved.
func TestMoveDuringUnbind(t *testing.T) {
	ctx := t.Context()
	client := cluster.Client(t)
	r := newRedis(client)
	plain := newRedis(cluster.Client(t))
	plain.keys = r.keys
	ok(t, r.BindChannel(ctx, "a", "news"))
	client.AddHook(&interrupt{command: "sadd", key: r.keys.channelSet(setOf("news")), run: func() {
		ok(t, plain.UnbindChannel(ctx, "a", "news"))
	}})
	_, err := r.MoveChannelList(ctx)
	ok(t, err)
	want(t, true)(r.PruneChannel(ctx, "news"))
	want(t, []string(nil))(keysOf(t, r), nil)
}

// TestRollback checks what stays in the sets after all new servers are replaced by former ones, and
// that the next upgrade cleans up.
func TestRollback(t *testing.T) {
	ctx := t.Context()
	r, old := onCluster(t)
	ok(t, errors.Join(r.BindChannels(ctx, "new", names("room", 100))...))
	want(t, []string(nil))(old.channels(), nil)
	old.join("")
	r.KeepChannelList(true) // at the next beat
	ok(t, r.BindChannel(ctx, "new", "later"))
	want(t, []string{"later"})(old.channels(), nil)

	// The clients of the new server reconnect to the former one.
	all := append([]string{"later"}, names("room", 100)...)
	old.bind(all...)
	for _, name := range all {
		ok(t, r.UnbindChannel(ctx, "new", name))
	}
	want(t, all)(old.channels(), nil)
	want(t, all)(pagesOf(t, r, "", 10), nil)

	old.unbind(all[:50]...)
	want(t, all[50:])(old.channels(), nil)
	want(t, all)(pagesOf(t, r, "", 10), nil) // the janitor of this version trims them, and prunes them
	for _, name := range pagesOf(t, r, "", 10) {
		_, err := r.PruneChannel(ctx, name)
		ok(t, err)
	}
	want(t, all[50:])(pagesOf(t, r, "", 10), nil)
	want(t, all[50:])(old.channels(), nil)
}

// interruptedInCluster is like interrupted, in the Cluster. plain and r write ch_list, too.
func interruptedInCluster(t *testing.T, command string, key func(keys) string, run func(plain *Redis)) (r, plain *Redis) {
	plain = newRedis(cluster.Client(t))
	client := cluster.Client(t)
	client.AddHook(&interrupt{command: command, key: key(plain.keys), run: func() { run(plain) }})
	r = newRedis(client)
	r.keys = plain.keys
	return r, plain
}

// TestBoundWhileRemoved checks that a channel stays in the list if another server binds it during
// an unbind or a prune, also if that is a server of a former version of which this one does not
// know.
func TestBoundWhileRemoved(t *testing.T) {
	ctx := t.Context()
	set := func(k keys) string { return k.channelSet(setOf("news")) }
	for name, c := range map[string]struct {
		bind func(old former, plain *Redis)
		old  bool // the former version must see it
	}{
		"new server": {func(_ former, plain *Redis) { ok(t, plain.BindChannel(ctx, "b", "news")) }, false},
		"server that writes both": {func(_ former, plain *Redis) {
			plain.KeepChannelList(true)
			ok(t, plain.BindChannel(ctx, "b", "news"))
		}, true},
		"former server": {func(old former, _ *Redis) { old.bind("news") }, true},
	} {
		for _, prune := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " prune ", prune), func(t *testing.T) {
				r, plain := interruptedInCluster(t, "srem", set, func(plain *Redis) {
					c.bind(former{t, cluster.Client(t), string(plain.keys), "b"}, plain)
				})
				r.KeepChannelList(false)
				plain.KeepChannelList(false)
				if prune {
					ok(t, cluster.Client(t).SAdd(ctx, set(r.keys), "news").Err())
					want(t, false)(r.PruneChannel(ctx, "news"))
				} else {
					ok(t, plain.BindChannel(ctx, "a", "news"))
					ok(t, r.UnbindChannel(ctx, "a", "news"))
				}
				want(t, []string{"news"})(pagesOf(t, plain, "", 10), nil)
				want(t, []string{"b"})(plain.ChannelServers(ctx, "news"))
				if old := (former{t, cluster.Client(t), string(plain.keys), "old"}); c.old {
					want(t, []string{"news"})(old.channels(), nil)
				}
				ok(t, plain.UnbindChannel(ctx, "b", "news"))
				want(t, []string(nil))(keysOf(t, plain), nil)
			})
		}
	}
}
