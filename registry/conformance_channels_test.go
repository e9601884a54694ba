package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"switchboard/internal/slots"
)

func testChannelServers(t *testing.T, s store) {
	ctx := t.Context()
	want(t, []string(nil))(s.ChannelServers(ctx, "news"))
	ok(t, s.BindChannel(ctx, "b", "news"))
	ok(t, s.BindChannel(ctx, "a", "news"))
	ok(t, s.BindChannel(ctx, "a", "other"))
	want(t, []string{"a", "b"})(s.ChannelServers(ctx, "news"))
	want(t, []string{"news", "other"})(s.HeldChannels(ctx, "a", 10))
	ok(t, s.UnbindChannel(ctx, "a", "news"))
	want(t, []string{"b"})(s.ChannelServers(ctx, "news"))
	want(t, []string{"other"})(s.HeldChannels(ctx, "a", 10))
}

func testRepeatedBinding(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.UnbindChannel(ctx, "a", "news"))
	ok(t, s.BindChannel(ctx, "a", "news"))
	ok(t, s.BindChannel(ctx, "a", "news"))
	want(t, []string{"a"})(s.ChannelServers(ctx, "news"))
	ok(t, s.UnbindChannel(ctx, "a", "news"))
	ok(t, s.UnbindChannel(ctx, "a", "news"))
	want(t, []string(nil))(s.ChannelServers(ctx, "news"))
	want(t, []string(nil))(allChannels(t, s, "", 10), nil)
}

func testHoldChannels(t *testing.T, s store) {
	ctx := t.Context()
	names := make([]string, 300)
	for i := range names {
		names[i] = fmt.Sprintf("n%03d", i)
		ok(t, s.BindChannel(ctx, "a", names[i]))
	}
	ok(t, s.HoldChannels(ctx, "b", names))
	want(t, names)(s.HeldChannels(ctx, "b", 1000))
	want(t, []string{"a"})(s.ChannelServers(ctx, names[0]))
	ok(t, s.ListChannels(ctx, "c", names))
	want(t, names)(s.HeldChannels(ctx, "c", 1000))
	want(t, []string{"a"})(s.ChannelServers(ctx, names[0]))
	for again, call := range map[string]func(context.Context, string, []string) error{"holds": s.HoldChannels, "lists": s.ListChannels} {
		ok(t, call(ctx, "b", nil))
		_, err := s.DeclareDead(ctx, "b")
		if ok(t, err); !errors.Is(call(ctx, "b", names[:1]), ErrDead) {
			t.Errorf("a dead server %s channels", again)
		}
	}
}

func testListedWhileHeld(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.BindChannel(ctx, "a", "news"))
	ok(t, s.BindChannel(ctx, "b", "news"))
	ok(t, s.UnbindChannel(ctx, "a", "news"))
	want(t, []string{"news"})(allChannels(t, s, "", 10), nil)
	ok(t, s.UnbindChannel(ctx, "b", "news"))
	want(t, []string(nil))(allChannels(t, s, "", 10), nil)
}

func testChannelPages(t *testing.T, s store) {
	ctx := t.Context()
	var all, rooms []string
	var group errgroup.Group
	for i := range 300 {
		name := fmt.Sprintf("%s-%d", []string{"room", "chat"}[i%2], i)
		all = append(all, name)
		if i%2 == 0 {
			rooms = append(rooms, name)
		}
		group.Go(func() error { return s.BindChannel(ctx, "a", name) })
	}
	ok(t, group.Wait())
	slices.Sort(all)
	slices.Sort(rooms)
	want(t, all)(allChannels(t, s, "", 7), nil)
	want(t, rooms)(allChannels(t, s, "room-", 7), nil)
	want(t, all)(allChannels(t, s, "", 0), nil)
	names, next, err := s.Channels(ctx, "", "", 20)
	ok(t, err)
	if len(names) == 0 || len(names) > 40 || next == "" {
		t.Errorf("the first page of about 20 has %d names, next %q", len(names), next)
	}
}

// testPagesDuringBinds checks that each channel that stays bound is in one page, while others are
// bound.
func testPagesDuringBinds(t *testing.T, s store) {
	ctx := t.Context()
	var stay, more []string
	for i := range 500 {
		stay, more = append(stay, fmt.Sprint("room-", i)), append(more, fmt.Sprint("room-more-", i), fmt.Sprint("chat-", i))
	}
	ok(t, errors.Join(s.BindChannels(ctx, "a", stay)...))
	var group errgroup.Group
	group.Go(func() error { return errors.Join(s.BindChannels(ctx, "a", more)...) })
	var got []string
	for cursor := ""; ; {
		names, next, err := s.Channels(ctx, "room-", cursor, 20)
		ok(t, err)
		got = append(got, slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "room-more-") })...)
		if next == "" {
			break
		}
		cursor = next
	}
	ok(t, group.Wait())
	slices.Sort(stay)
	slices.Sort(got)
	want(t, stay)(got, nil)
}

func testListedIn(t *testing.T, s store) {
	none, all := slots.Set{}, slots.All()
	for _, channel := range []string{"news", "chat"} {
		if s.ListedIn(channel, &none) || !s.ListedIn(channel, &all) {
			t.Errorf("%s is listed in no slots: %t, in all: %t", channel, s.ListedIn(channel, &none), s.ListedIn(channel, &all))
		}
	}
}

func testPrefixIsLiteral(t *testing.T, s store) {
	ctx := t.Context()
	names := []string{`a*b`, `axb`, `a?b`, `a[x]b`, `a\b`, `a\*b`}
	for _, name := range names {
		ok(t, s.BindChannel(ctx, "a", name))
	}
	for prefix, matches := range map[string][]string{
		`a*`: {`a*b`}, `a?`: {`a?b`}, `a[x]`: {`a[x]b`}, `a\`: {`a\*b`, `a\b`}, `a\*`: {`a\*b`}, `b`: nil,
	} {
		want(t, matches)(allChannels(t, s, prefix, 10), nil)
	}
}

func testPruneInUse(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, s.BindChannel(ctx, "a", "news"))
	want(t, false)(s.PruneChannel(ctx, "news"))
	want(t, []string{"news"})(allChannels(t, s, "", 10), nil)
	ok(t, s.UnbindChannel(ctx, "a", "news"))
	want(t, false)(s.PruneChannel(ctx, "news"))
}

// testConcurrentBinding checks that a channel with a server stays listed while other servers bind
// and unbind it.
func testConcurrentBinding(t *testing.T, s store) {
	ctx := t.Context()
	var group errgroup.Group
	for i := range 8 {
		server := fmt.Sprint("server-", i)
		group.Go(func() error {
			for range 20 {
				if err := s.BindChannel(ctx, server, "news"); err != nil {
					return err
				}
				if names, _, err := s.Channels(ctx, "", "", 10); i == 0 && (err != nil || len(names) != 1) {
					return fmt.Errorf("bound, but the channels are %v, %v", names, err)
				}
				if i == 0 {
					continue // stays bound, so the channel must stay listed
				}
				if err := s.UnbindChannel(ctx, server, "news"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	ok(t, group.Wait())
	want(t, []string{"server-0"})(s.ChannelServers(ctx, "news"))
	want(t, []string{"news"})(allChannels(t, s, "", 10), nil)
}
