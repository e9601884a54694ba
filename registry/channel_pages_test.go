package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// pagesOf returns the names of all pages as they come, sorted.
func pagesOf(t *testing.T, r contract, prefix string, limit int) (all []string) {
	t.Helper()
	for cursor := ""; ; {
		names, next, err := r.Channels(t.Context(), prefix, cursor, limit)
		ok(t, err)
		if all = append(all, names...); next == "" {
			slices.Sort(all)
			return all
		}
		cursor = next
	}
}

// TestPageOfSmallSets checks that a page has names of several sets, and that a walk over few
// channels is few round trips.
func TestPageOfSmallSets(t *testing.T) {
	ctx, client := t.Context(), cluster.Client(t)
	var n trips
	client.AddHook(&n)
	r := newRedis(client)
	r.KeepChannelList(false)
	ok(t, errors.Join(r.BindChannels(ctx, "a", names("room", 200))...))
	n = nil
	found, next, err := r.Channels(ctx, "", "", 500)
	if err != nil || len(found) != 200 || next != "" || len(n) > 9 {
		t.Errorf("%d names, next %q, %v, round trips of %v commands", len(found), next, err, n)
	}
	found, next, err = r.Channels(ctx, "", "", 50)
	if err != nil || len(found) < 50 || len(found) > 75 || next == "" {
		t.Errorf("a page of 50 has %d names, next %q, %v", len(found), next, err)
	}
}

// TestCursors checks the cursors of a Cluster, also those of former versions.
func TestCursors(t *testing.T) {
	r, old := onCluster(t)
	old.bind(names("room", 600)...)
	_, position, err := old.client.SScan(t.Context(), old.prefix+"ch_list", 0, "*", 100).Result()
	ok(t, err)
	_, _, err = r.Channels(t.Context(), "", fmt.Sprint(position), 100)
	ok(t, err)
	for _, cursor := range []string{"news", "64:0", "-1:0", "1:x", ":", "1:2:3", "1.5", "+1:0x"} {
		_, next, err := r.Channels(t.Context(), "", cursor, 10)
		if fails(t, err, ErrBadCursor); next != "" {
			t.Errorf("next of %q is %q", cursor, next)
		}
	}
}

// unreadable is a hook that fails commands with a key.
type unreadable struct{ key string }

var errUnreadable = errors.New("the key cannot be read")

func (unreadable) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (unreadable) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (u unreadable) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		for _, c := range commands {
			if len(c.Args()) > 1 && c.Args()[1] == u.key {
				c.SetErr(errUnreadable)
				err = errUnreadable
			}
		}
		return err
	}
}

// TestUnreachableSet checks that a set that cannot be reached concerns only its channels.
func TestUnreachableSet(t *testing.T) {
	ctx := t.Context()
	r, _ := onCluster(t)
	list := names("room", 1000)
	ok(t, errors.Join(r.BindChannels(ctx, "a", list)...))
	const lost = 17
	client := cluster.Client(t)
	client.AddHook(unreadable{r.keys.channelSet(lost)})
	broken := newRedis(client)
	broken.keys = r.keys
	broken.KeepChannelList(false)
	others := slices.DeleteFunc(slices.Clone(list), func(name string) bool { return setOf(name) == lost })

	for _, limit := range []int{1, 30, 500} {
		var found []string
		var errs []error
		for cursor := ""; ; {
			names, next, err := broken.Channels(ctx, "", cursor, limit)
			if found = append(found, names...); err != nil {
				errs = append(errs, err)
			}
			if next == "" {
				break
			}
			cursor = next
		}
		slices.Sort(found)
		if want(t, others)(found, nil); len(errs) != 1 || !errors.Is(errs[0], errUnreadable) {
			t.Errorf("errors %v", errs)
		}
	}

	for i, err := range broken.BindChannels(ctx, "b", list) {
		if errors.Is(err, errUnreadable) != (setOf(list[i]) == lost) {
			t.Errorf("bind of %s in set %d: %v", list[i], setOf(list[i]), err)
		}
	}
	ok(t, r.unbindChannels(ctx, "b", list))
	err := broken.unbindChannels(ctx, "a", list)
	for _, channel := range list {
		if err := redispipe.ErrorOf(err, channel); errors.Is(err, errUnreadable) != (setOf(channel) == lost) {
			t.Errorf("unbind of %s in set %d: %v", channel, setOf(channel), err)
		}
	}
	held, err := r.HeldChannels(ctx, "a", 1000)
	if err != nil || len(held) != len(list)-len(others) {
		t.Errorf("%d channels are held, want those of set %d, %v", len(held), lost, err)
	}
}
