package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// hall is a channel that all are in, so many at full scale that changes are told together.
const hall = "hall"

// followed is how many users the watchers follow, besides the one whose devices vanish.
const followed = 10

// open has a watcher at each broker follow all channels, and some users, while nobody is there.
func (s *stage) open(ctx context.Context, scale scale) error {
	channels := []string{hall, ghostTown, userPrefix + ghostUser}
	for i := range scale.Rooms {
		channels = append(channels, room(scale, i))
	}
	for i := range min(followed, scale.Clients/devices) {
		channels = append(channels, fmt.Sprintf("%suser-%d", userPrefix, i))
	}
	return s.watch(ctx, s.brokers, channels)
}

// watch has a watcher at each of these brokers follow the channels. Each comes when those before it are known everywhere, so
// that it is told of none whom it has read to be there.
func (s *stage) watch(ctx context.Context, brokers []*instance, channels []string) error {
	if err := s.acquainted(ctx, brokers); err != nil {
		return err
	}
	for _, b := range brokers {
		w := newWatcher("watcher-"+b.name, b, channels, s.roster)
		s.watchers = append(s.watchers, w)
		w.start(ctx)
		if err := s.certain(ctx, s.truth(nil)); err != nil {
			return err
		}
	}
	return nil
}

// acquainted waits until each of these takes all brokers for alive, which it learns at its beats: before that it tells of
// nobody there.
func (s *stage) acquainted(ctx context.Context, brokers []*instance) error {
	for _, b := range brokers {
		if err := retry(ctx, func() error {
			var answer struct{ Servers []struct{ Server string } }
			if err := ask(ctx, b, http.MethodGet, "/v1/servers", nil, &answer); err != nil {
				return err
			}
			for _, other := range s.brokers {
				if !slices.ContainsFunc(answer.Servers, func(a struct{ Server string }) bool { return a.Server == other.id }) {
					return fmt.Errorf("%s does not know of %s", b.name, other.id)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// certain waits until all know the truth. From then on nobody may be told anything twice.
func (s *stage) certain(ctx context.Context, t truth) error {
	if err := retry(ctx, func() error {
		c, err := s.count(ctx, s.watchers, t)
		if err == nil && c.wrong() > 0 {
			err = fmt.Errorf("presence is wrong from the start: %q", c.what)
		}
		return err
	}); err != nil {
		return err
	}
	s.roster.firm()
	return nil
}

// truth is who is there when these and all watchers are.
func (s *stage) truth(cast []member) truth {
	t := truth{in: map[string][]string{}, devices: map[string]int{ghostUser: 0}, grace: len(cast) == 0}
	for _, m := range s.cast {
		t.devices[m.user] = 0
	}
	for _, m := range cast {
		t.devices[m.user]++
		for _, channel := range m.channels {
			t.in[channel] = append(t.in[channel], label(m.user, m.client))
		}
	}
	for _, w := range s.watchers {
		t.devices[w.name] = 1
		for _, channel := range w.channels { // those of users have nobody in them, but nobody looks
			t.in[channel] = append(t.in[channel], w.label())
		}
	}
	for _, names := range t.in {
		slices.Sort(names)
	}
	return t
}

// untold counts the ghosts whom watchers at the other brokers have not been told to be gone, or whom these name.
func (s *stage) untold(ctx context.Context) (c census, err error) {
	var elsewhere []*watcher
	var want []string
	for _, w := range s.watchers {
		if w.at != s.victim() { // whose own watcher has vanished, or does for now
			elsewhere, want = append(elsewhere, w), append(want, w.label())
		}
	}
	for _, w := range elsewhere {
		if err := c.asks(ctx, s.roster, w, ghostTown, want); err != nil {
			return c, err
		}
	}
	return c, nil
}

// allTrue has presence become true when these are there and no others.
func (s *stage) allTrue(ctx context.Context, when string, cast []member) error {
	t := s.truth(cast)
	return s.attend(ctx, when, s.times.everybody(), func(ctx context.Context) (census, error) {
		return s.count(ctx, s.watchers, t)
	})
}

// close has the watchers leave.
func (s *stage) close() {
	for _, w := range s.watchers {
		w.end()
	}
	s.watchers = nil
}

// everybody is how long presence may need to become true, whatever has happened: what died is gone by then, and of a user
// one says so after another 5 s, looked at once a second.
func (t times) everybody() time.Duration { return t.bound() + 7*time.Second }
