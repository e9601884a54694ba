package registry

import (
	"slices"
	"testing"
	"time"
)

// TestMergeSubscriptions merges lists that were read in another order than they changed. Only the
// time of the last change counts, for each list by itself.
func TestMergeSubscriptions(t *testing.T) {
	list := func(times ...int64) (l []Subscription) {
		for _, at := range times {
			l = append(l, Subscription{Channel: "news", Kind: Subscribed, At: at, After: -1})
		}
		return l
	}
	long, late := list(1, 2, 3), list(4)
	for _, c := range []struct{ a, b, want []Subscription }{
		{long, late, late},
		{late, long, late},
		{long, nil, long},
		{nil, long, long},
		{nil, nil, nil},
	} {
		if got := (Subscriptions{User: c.a}).Merge(Subscriptions{User: c.b}); !slices.Equal(got.User, c.want) || len(got.Client) > 0 {
			t.Errorf("%v and %v of a user: %v", c.a, c.b, got)
		}
		if got := (Subscriptions{Client: c.a}).Merge(Subscriptions{Client: c.b}); !slices.Equal(got.Client, c.want) || len(got.User) > 0 {
			t.Errorf("%v and %v of a client: %v", c.a, c.b, got)
		}
	}
	mixed := Subscriptions{long, late}.Merge(Subscriptions{late, long})
	if !slices.Equal(mixed.User, late) || !slices.Equal(mixed.Client, late) {
		t.Errorf("merged %v", mixed)
	}
	same := Subscription{Channel: "chat", Kind: Subscribed, At: 4, After: -1}
	if got := (Subscriptions{User: late}).Merge(Subscriptions{User: []Subscription{same}}); got.User[0] != same {
		t.Errorf("of two lists of the same time %v is merged", got.User)
	}
}

// TestSubscribeFasterClock changes a list whose entries are of a master with a faster clock. The
// change counts as the latest.
func TestSubscribeFasterClock(t *testing.T) {
	s := redisStore(t, single.Client(t))
	ahead := time.Now().Add(time.Hour).UnixMicro()
	held := Subscriptions{User: []Subscription{
		{Channel: "chat", Kind: Subscribed, At: ahead - 1, After: -1},
		{Channel: "news", Kind: Subscribed, At: ahead, After: -1},
	}}
	o := s.Subscriptions(t.Context(), []Subscriber{{User: "ann", Client: "ann/phone", Held: held}})[0]
	ok(t, o.Err)
	if shown(o.User) != "+chat +news" {
		t.Fatalf("restored %q", shown(o.User))
	}
	s.change(t, subscribing("ann", "", Unsubscribed, "news"))
	second := s.wantLists(t, "ann", "ann/phone", "+chat -news", "").User
	s.change(t, subscribing("ann", "", Subscribed, "mine"))
	third := s.wantLists(t, "ann", "ann/phone", "+chat -news +mine", "").User
	if second[1].At <= ahead || third[2].At <= second[1].At {
		t.Errorf("%d is followed by %d and %d", ahead, second[1].At, third[2].At)
	}
}

// TestSubscribeStoresFirst checks that the list is stored before servers can find that it has
// changed: one that reads it too early does not read it again.
func TestSubscribeStoresFirst(t *testing.T) {
	client := single.Client(t)
	s := redisStore(t, client)
	r := s.contract.(*Redis)
	ok(t, client.Set(t.Context(), r.keys.revokedList(), "not a sorted set", time.Minute).Err())
	if _, err := s.Subscribe(t.Context(), subscribing("ann", "", Subscribed, "news")); err == nil {
		t.Error("the change is listed in a string")
	}
	s.wantLists(t, "ann", "ann/phone", "+news", "")
}
