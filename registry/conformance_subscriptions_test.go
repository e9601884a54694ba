package registry

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// subscribing returns a change of the list of a user's client; "" stands for all.
func subscribing(user, client string, kind SubscriptionKind, channels ...string) SubscriptionChange {
	return SubscriptionChange{User: user, Client: client, Channels: channels, Kind: kind, After: -1}
}

// change changes a list.
func (s store) change(t *testing.T, c SubscriptionChange) SubscriptionsChanged {
	t.Helper()
	changed, err := s.Subscribe(t.Context(), c)
	ok(t, err)
	return changed
}

// lists reads the lists of a client.
func (s store) lists(t *testing.T, user, client string) Subscriptions {
	t.Helper()
	o := s.Subscriptions(t.Context(), []Subscriber{{User: user, Client: client}})[0]
	ok(t, o.Err)
	return o.Subscriptions
}

// shown lists kinds and channels, and positions, like "+news +chat:5 -old".
func shown(list []Subscription) string {
	var words []string
	for _, s := range list {
		word := string(rune(s.Kind)) + s.Channel
		if s.After >= 0 {
			word += fmt.Sprint(":", s.After)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// wantLists checks the lists of a client.
func (s store) wantLists(t *testing.T, user, client, ofUser, ofClient string) Subscriptions {
	t.Helper()
	l := s.lists(t, user, client)
	if shown(l.User) != ofUser || shown(l.Client) != ofClient {
		t.Errorf("%s has %q and %q, want %q and %q", client, shown(l.User), shown(l.Client), ofUser, ofClient)
	}
	return l
}

// bindListed binds a client and returns whether it has lists.
func (s store) bindListed(t *testing.T, user, client string, generation int64) bool {
	t.Helper()
	list := []UserBinding{{User: user, Binding: Binding{client, "a", generation}}}
	ok(t, s.BindUsers(t.Context(), list)[0])
	return list[0].Subscribed
}

func testSubscriptions(t *testing.T, s store) {
	if s.bindListed(t, "ann", "ann/phone", 1) {
		t.Error("a client has lists before there are any")
	}
	begun := time.Now()
	changed := s.change(t, subscribing("ann", "", Subscribed, "news", "chat"))
	want(t, []Binding{{"ann/phone", "a", 1}})(changed.Clients, nil)
	if life := time.UnixMilli(changed.Until).Sub(begun); life < 23*time.Hour || life > 25*time.Hour {
		t.Errorf("the list is kept for %v", life)
	}
	if !s.bindListed(t, "ann", "ann/tablet", 2) {
		t.Error("a client has no lists")
	}
	first := s.wantLists(t, "ann", "ann/tablet", "+chat +news", "")
	if at := time.UnixMicro(first.User[0].At).Sub(begun); at < -time.Minute || at > time.Minute {
		t.Errorf("the entries are from %v after the call", at)
	}

	from := subscribing("ann", "ann/tablet", Subscribed, "old")
	from.After = 0
	want(t, []Binding{{"ann/tablet", "a", 2}})(s.change(t, from).Clients, nil)
	from.Channels, from.After = []string{"older", "older"}, 735325130218701
	s.change(t, from)
	want(t, []Binding(nil))(s.change(t, subscribing("ann", "ann/new", Unsubscribed, "news")).Clients, nil)
	s.change(t, subscribing("ann", "", Unsubscribed, "news", "unknown"))
	s.wantLists(t, "ann", "ann/tablet", "+chat -news -unknown", "+old:0 +older:735325130218701")
	s.wantLists(t, "ann", "ann/new", "+chat -news -unknown", "-news")
	s.change(t, subscribing("ann", "", Subscribed, "news"))
	second := s.wantLists(t, "ann", "ann/phone", "+chat -unknown +news", "")
	if !slices.IsSortedFunc(second.User, func(a, b Subscription) int { return int(a.At - b.At) }) || second.User[2].At <= first.User[1].At {
		t.Errorf("times %v", second)
	}
	s.wantLists(t, "bob", "bob/phone", "", "")

	want(t, []Binding(nil))(s.change(t, subscribing("", "guest", Subscribed, "news")).Clients, nil)
	s.wantLists(t, "", "guest", "", "+news")
	s.wantLists(t, "guest", "guest/x", "", "")
	want(t, []Binding(nil))(s.change(t, subscribing("ann", "ann/phone", Rejoined, "unknown")).Clients[1:], nil)
	s.wantLists(t, "ann", "ann/phone", "+chat -unknown +news", "=unknown")
}

func testSubscriptionsBounded(t *testing.T, s store) {
	var channels []string
	for i := range MaxSubscriptions {
		channels = append(channels, fmt.Sprintf("c%02d", i))
	}
	s.change(t, subscribing("ann", "", Subscribed, channels...))
	s.change(t, subscribing("ann", "", Subscribed, channels[3]))
	_, err := s.Subscribe(t.Context(), subscribing("ann", "", Subscribed, "c03", "more"))
	fails(t, err, ErrTooManySubscriptions)
	if n := len(s.lists(t, "ann", "ann/phone").User); n != MaxSubscriptions {
		t.Errorf("%d entries", n)
	}
	s.change(t, subscribing("ann", "", Unsubscribed, channels[:2]...))
	s.change(t, subscribing("ann", "", Subscribed, "more"))
	for i := range MaxSubscriptions {
		s.change(t, subscribing("ann", "", Unsubscribed, fmt.Sprintf("d%02d", i)))
	}
	list := s.lists(t, "ann", "ann/phone").User
	has := func(c string) bool {
		return slices.ContainsFunc(list, func(s Subscription) bool { return s.Channel == c })
	}
	if len(list) != 2*MaxSubscriptions-1 || has("c00") || has("c01") || !has("d00") || !has("more") {
		t.Errorf("%d entries: %s", len(list), shown(list))
	}
}

func testSubscriptionsEnd(t *testing.T, s store) {
	ofUser, ofClient := subscribing("ann", "", Subscribed, "news", "chat"), subscribing("ann", "ann/phone", Subscribed, "mine")
	s.change(t, ofUser)
	s.change(t, ofClient)
	held := s.wantLists(t, "ann", "ann/phone", "+chat +news", "+mine")
	s.loseList(ofUser)
	s.loseList(ofClient)
	if s.bindListed(t, "ann", "ann/phone", 1) {
		t.Error("the lists have not ended")
	}
	s.wantLists(t, "ann", "ann/phone", "", "")
	if _, memory := s.contract.(*Memory); memory {
		return // it loses nothing before the end
	}

	// A failover has lost the lists. A client that has them restores them, except what is older.
	s.change(t, subscribing("ann", "", Unsubscribed, "news"))
	o := s.Subscriptions(t.Context(), []Subscriber{{User: "ann", Client: "ann/phone", Held: held}})[0]
	ok(t, o.Err)
	if shown(o.User) != "+chat -news" || shown(o.Client) != "+mine" {
		t.Errorf("restored %q and %q", shown(o.User), shown(o.Client))
	}
	s.wantLists(t, "ann", "ann/tablet", "+chat -news", "")
	s.loseList(ofUser) // checks the TTL
	s.loseList(ofClient)
}

// testSubscribeRace binds and subscribes at the same time: the bind finds the list, or the call
// finds the client.
func testSubscribeRace(t *testing.T, s store) {
	for round := range 50 {
		user := fmt.Sprint("user-", round)
		var wg sync.WaitGroup
		var listed bool
		var changed SubscriptionsChanged
		wg.Go(func() { listed = s.bindListed(t, user, user+"/phone", 1) })
		wg.Go(func() { changed = s.change(t, subscribing(user, "", Subscribed, "news")) })
		wg.Wait()
		if !listed && len(changed.Clients) == 0 {
			t.Error("neither has found the other")
		}
	}
}

func testSubscriptionsListed(t *testing.T, s store) {
	if _, memory := s.contract.(*Memory); memory {
		return // the only server hears of all changes
	}
	s.change(t, subscribing("ann", "ann/phone", Subscribed, "news"))
	s.change(t, subscribing("", "guest", Subscribed, "news"))
	names, _, _, err := s.RevokedSince(t.Context(), 0)
	if err != nil || len(names) != 2 || names[0] != "ann" {
		t.Fatalf("listed %q, %v", names, err)
	}
	if client, ok := AnonymousClient(names[1]); !ok || client != "guest" {
		t.Errorf("listed %q", names[1])
	}
	if _, ok := AnonymousClient("ann"); ok {
		t.Error("a user counts as a client")
	}
}
