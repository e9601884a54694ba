package registry

import (
	"context"
	"fmt"
	"testing"
)

// watchUser calls WatchUsers for one user.
func watchUser(t *testing.T, s store, server, user string, renewed bool) UserWatch {
	t.Helper()
	o := s.WatchUsers(t.Context(), server, []string{user})[0]
	ok(t, o.Err)
	if o.Renewed != renewed || o.Number <= 0 {
		t.Errorf("server %s watches user %s: %+v, want renewed %v", server, user, o, renewed)
	}
	return UserWatch{User: user, Server: server, Number: o.Number}
}

// bindWatched binds a client, and returns the servers that watch its user.
func bindWatched(ctx context.Context, s store, user string, b Binding) ([]string, error) {
	list := []UserBinding{{User: user, Binding: b}}
	err := s.BindUsers(ctx, list)[0]
	return list[0].Watchers, err
}

func testUserWatchers(t *testing.T, s store) {
	ctx, none := t.Context(), []string(nil)
	want(t, none)(bindWatched(ctx, s, "ann", Binding{"phone", "a", 5}))
	watchB := watchUser(t, s, "b", "ann", false)
	watchA := watchUser(t, s, "a", "ann", false)
	watchUser(t, s, "c", "bob", false)
	want(t, []string{"a", "b"})(bindWatched(ctx, s, "ann", Binding{"phone", "a", 5}))
	want(t, none)(bindWatched(ctx, s, "ann", Binding{"phone", "b", 4})) // changes nothing
	want(t, []string{"a", "b"})(s.ReleaseUser(ctx, "ann", "phone", 4))
	want(t, []string{"a", "b"})(s.ReleaseUser(ctx, "ann", "phone", 5))
	want(t, []string{"c"})(bindWatched(ctx, s, "bob", Binding{"phone", "a", 5}))

	// With and without watchers and subscriptions, in one call.
	_, err := s.Subscribe(ctx, SubscriptionChange{User: "bob", Channels: []string{"news"}, Kind: Subscribed})
	ok(t, err)
	list := []UserBinding{
		{User: "bob", Binding: Binding{"phone", "a", 6}}, {User: "cat", Binding: Binding{"tab", "a", 6}}, {User: "ann", Binding: Binding{"phone", "a", 6}},
	}
	for _, err := range s.BindUsers(ctx, list) {
		ok(t, err)
	}
	if got := fmt.Sprint(list[0].Watchers, list[0].Subscribed, list[1].Watchers, list[1].Subscribed, list[2].Watchers, list[2].Subscribed); got != "[c] true [] false [a b] false" {
		t.Errorf("the watchers and subscriptions are %s", got)
	}

	for _, o := range s.WatchUsers(ctx, "d", []string{"eve", "ann", "fay"}) { // several in one call
		ok(t, o.Err)
		watchD := UserWatch{User: "ann", Server: "d", Number: o.Number}
		ok(t, s.UnwatchUsers(ctx, []UserWatch{watchD, watchD}))
	}
	want(t, []string{"d"})(bindWatched(ctx, s, "fay", Binding{"phone", "a", 6}))
	ok(t, s.UnwatchUsers(ctx, []UserWatch{watchB, {User: "cat", Server: "b", Number: 1}}))
	want(t, []string{"a"})(s.ReleaseUser(ctx, "ann", "phone", 6))
	ok(t, s.UnwatchUsers(ctx, []UserWatch{watchA}))
	want(t, none)(bindWatched(ctx, s, "ann", Binding{"phone", "a", 7}))
	watchUser(t, s, "b", "ann", false)
	ok(t, s.UnwatchUsers(ctx, nil))
}

// testUnwatchLate executes a call that ends a watch after a newer watch.
func testUnwatchLate(t *testing.T, s store) {
	first := watchUser(t, s, "a", "ann", false)
	second := watchUser(t, s, "a", "ann", true)
	if second.Number <= first.Number {
		t.Errorf("the numbers are %d and %d", first.Number, second.Number)
	}
	ok(t, s.UnwatchUsers(t.Context(), []UserWatch{first}))
	want(t, []string{"a"})(bindWatched(t.Context(), s, "ann", Binding{"phone", "a", 5}))
}

// testWatchUserRace checks that of a watch and a bind at the same time, either the bind returns the
// server, or the server reads the binding.
func testWatchUserRace(t *testing.T, s store) {
	for i := range 50 {
		user := fmt.Sprintf("user-%d", i)
		watchers := make(chan []string)
		go func() {
			list, err := bindWatched(t.Context(), s, user, Binding{"phone", "b", 1})
			if err != nil {
				t.Error(err)
			}
			watchers <- list
		}()
		o := s.WatchUsers(t.Context(), "a", []string{user})[0]
		ok(t, o.Err)
		bindings, err := s.User(t.Context(), user)
		ok(t, err)
		if list := <-watchers; len(list) == 0 && len(bindings) == 0 {
			t.Fatalf("%s: neither the bind nor the watch has seen the other", user)
		}
	}
}

func testUserWatchersExpire(t *testing.T, s store) {
	watchUser(t, s, "a", "ann", false)
	s.ageWatches(t, "ann")
	watchUser(t, s, "b", "ann", false)
	want(t, []string{"b"})(bindWatched(t.Context(), s, "ann", Binding{"phone", "a", 5}))
}
