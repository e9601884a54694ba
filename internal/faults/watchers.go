package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/testbed"
)

// sharedChannel has all clients as members. At full scale they are so many that brokers batch the
// joins and leaves.
const sharedChannel = "shared"

// watchedUsers is the number of users that the watchers follow, besides the ghosts' user.
const watchedUsers = 10

// startWatchers starts a watcher at each broker, before any client connects. Each watches all
// channels and some users.
func (tb *bed) startWatchers(ctx context.Context, scale scale) error {
	channels := []string{sharedChannel, ghostChannel, userPrefix + ghostUser}
	for i := range scale.Rooms {
		channels = append(channels, room(scale, i))
	}
	for i := range min(watchedUsers, scale.Clients/devicesPerUser) {
		channels = append(channels, fmt.Sprintf("%suser-%d", userPrefix, i))
	}
	return tb.addWatchers(ctx, tb.brokers, channels)
}

// addWatchers starts a watcher at each of the brokers. It starts one at a time and waits until all
// know it, so that no watcher receives a join of a member that it has already read.
func (tb *bed) addWatchers(ctx context.Context, brokers []*testbed.Broker, channels []string) error {
	if err := tb.awaitServersKnown(ctx, brokers); err != nil {
		return err
	}
	for _, b := range brokers {
		w := newWatcher("watcher-"+b.Name, b, channels, tb.presence)
		tb.watchers = append(tb.watchers, w)
		w.start(ctx)
		if err := tb.awaitBaseline(ctx, tb.expected(nil)); err != nil {
			return err
		}
	}
	return nil
}

// awaitServersKnown waits until each of the brokers knows all other brokers. A broker learns of
// another at its beats, and reports no members of a server that it does not know.
func (tb *bed) awaitServersKnown(ctx context.Context, brokers []*testbed.Broker) error {
	for _, b := range brokers {
		if err := await.Success(ctx, func() error {
			var answer struct{ Servers []struct{ Server string } }
			if err := b.Call(ctx, http.MethodGet, "/v1/servers", nil, &answer); err != nil {
				return err
			}
			for _, other := range tb.brokers {
				if !slices.ContainsFunc(answer.Servers, func(a struct{ Server string }) bool { return a.Server == other.ID }) {
					return fmt.Errorf("%s does not know of %s", b.Name, other.ID)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// awaitBaseline waits until all brokers and watchers agree with the expected presence. From then on
// no event may repeat what is known.
func (tb *bed) awaitBaseline(ctx context.Context, want expectedPresence) error {
	var wrong error // the last difference: a later check may end earlier
	for {
		found, err := tb.checkPresence(ctx, tb.watchers, want)
		if err == nil {
			if found.mismatches() == 0 {
				return tb.settlePresence(ctx)
			}
			wrong = fmt.Errorf("presence is wrong before the fault: %q", found.details)
		}
		if await.Pause(ctx, presencePoll) != nil {
			return errors.Join(wrong, err)
		}
	}
}

// expected returns the presence when these clients and all watchers are connected.
func (tb *bed) expected(specs []clientSpec) expectedPresence {
	e := expectedPresence{members: map[string][]string{}, devices: map[string]int{ghostUser: 0}, offlineMayLag: len(specs) == 0}
	for _, spec := range tb.clientSpecs {
		e.devices[spec.user] = 0
	}
	for _, spec := range specs {
		e.devices[spec.user]++
		for _, channel := range spec.channels {
			e.members[channel] = append(e.members[channel], memberName(spec.user, spec.client))
		}
	}
	for _, w := range tb.watchers {
		e.devices[w.name] = 1
		for _, channel := range w.channels { // the check skips the channels of users
			e.members[channel] = append(e.members[channel], w.clientID())
		}
	}
	for _, names := range e.members {
		slices.Sort(names)
	}
	return e
}

// checkGhostsLeft checks that watchers and brokers other than the victim's report no ghosts.
func (tb *bed) checkGhostsLeft(ctx context.Context) (c presenceCheck, err error) {
	var others []*watcher
	var want []string
	for _, w := range tb.watchers {
		if w.broker != tb.victim() { // the victim's own watcher is disconnected
			others, want = append(others, w), append(want, w.clientID())
		}
	}
	for _, w := range others {
		if err := c.checkChannel(ctx, tb.presence, w, ghostChannel, want); err != nil {
			return c, err
		}
	}
	return c, nil
}

// verifyPresence waits until presence consists of exactly these clients and the watchers.
func (tb *bed) verifyPresence(ctx context.Context, when string, specs []clientSpec) error {
	want := tb.expected(specs)
	return tb.awaitPresence(ctx, when, tb.times.presenceBound(), func(ctx context.Context) (presenceCheck, error) {
		return tb.checkPresence(ctx, tb.watchers, want)
	})
}

// stopWatchers disconnects the watchers.
func (tb *bed) stopWatchers() {
	for _, w := range tb.watchers {
		w.stop()
	}
	tb.watchers = nil
}

// presenceBound is the longest time until presence is correct again. It is cleanupBound and 7 s
// more, because a user is reported offline 5 s after its last device, by a check once a second.
func (t times) presenceBound() time.Duration { return t.cleanupBound() + 7*time.Second }
