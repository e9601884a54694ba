package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestConformance runs the same tests over every implementation.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s store)
	}{
		{"servers have descriptions", testDescription},
		{"a server without a lease is listed but not live", testLostLease},
		{"notifications of changed states", testNotifyStates},
		{"changes of the list of live servers", testChanges},
		{"a lease ends in the list of live servers", testLeaseInList},
		{"no lease ends in a pause", testPause},
		{"a dead server is not in the list of live servers", testDeadInList},
		{"a beat returns the number of changed states", testStatesInChanges},
		{"a server that was not declared dead is live again after a beat", testBeatAfterLostLease},
		{"a server that leaves is removed", testLeave},
		{"a server with a lease is not declared dead", testDeclareLiveServerDead},
		{"a dead server cannot write", testDeadServer},
		{"a tombstone expires", testTombstoneEnds},
		{"servers that have died are listed", testDied},
		{"channels and clients of a dead server are cleaned up", testCleaning},
		{"held clients", testHeldClients},
		{"clients come in pages", testClientPages},
		{"what a server holds is compared", testCompareHeld},

		{"channels have servers", testChannelServers},
		{"binding and unbinding can be repeated", testRepeatedBinding},
		{"channels are held again", testHoldChannels},
		{"a channel is listed while it has a server", testListedWhileHeld},
		{"channels come in pages", testChannelPages},
		{"a prefix is not a pattern", testPrefixIsLiteral},
		{"a channel in use is not pruned", testPruneInUse},
		{"servers bind concurrently", testConcurrentBinding},
		{"channels come in pages while others are bound", testPagesDuringBinds},
		{"the list of channels has slots", testListedIn},

		{"batches", testBatches},

		{"a roster has members", testRoster},
		{"a change of an older generation is ignored", testRosterGenerations},
		{"an empty roster has no version", testEmptyRoster},
		{"changes return the watchers", testWatchers},
		{"a dead server's roster is removed with its channels", testPresenceOfDeadServer},
		{"rosters come in pages", testRosterPages},
		{"versions of rosters", testRosterVersions},

		{"a user has clients", testUserClients},
		{"the higher generation wins", testGenerations},
		{"neighbouring large generations differ", testLargeGenerations},
		{"a user at MaxClients loses the oldest offline client", testEviction},
		{"a user has too many clients online", testMaxOnline},
		{"users expire", testUserExpires},
		{"changes of a user return the servers that watch", testUserWatchers},
		{"a late call ends no newer watch", testUnwatchLate},
		{"a watch and a bind at the same time", testWatchUserRace},
		{"watches end", testUserWatchersExpire},

		{"reads count in the meter of a call", testMetered},
		{"revoked tokens are refused", testRevoke},
		{"the later revocation wins", testRevokeLater},
		{"a revocation ends", testRevokedExpires},
		{"a revocation and a bind at the same time", testRevokeRace},
		{"servers read what was revoked", testRevokedSince},
		{"the backend subscribes clients", testSubscriptions},
		{"lists of subscriptions are bounded", testSubscriptionsBounded},
		{"lists of subscriptions end", testSubscriptionsEnd},
		{"a subscription and a bind at the same time", testSubscribeRace},
		{"servers read whose subscriptions have changed", testSubscriptionsListed},
		{"servers share what a sender has spent", testSpend},
		{"servers spend at the same time", testSpendAtOnce},
	} {
		t.Run(c.name, func(t *testing.T) { eachStore(t, c.test) })
	}
}

// bindUser calls BindUsers for one binding.
func bindUser(ctx context.Context, r contract, user string, b Binding) error {
	return r.BindUsers(ctx, []UserBinding{{User: user, Binding: b}})[0]
}

// releaseUser calls ReleaseUser for a user without watchers.
func releaseUser(ctx context.Context, r contract, user, client string, generation int64) error {
	watchers, err := r.ReleaseUser(ctx, user, client, generation)
	if len(watchers) > 0 {
		err = errors.Join(err, fmt.Errorf("the user has the watchers %v", watchers))
	}
	return err
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fails(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// want checks the results of a call: want(t, true)(s.DeclaredDead(ctx, "a")). An empty slice equals
// nil.
func want[V any](t *testing.T, value V) func(V, error) {
	return func(got V, err error) {
		t.Helper()
		if err != nil || fmt.Sprint(got) != fmt.Sprint(value) {
			t.Fatalf("got %v, %v; want %v", got, err, value)
		}
	}
}

// allChannels reads all pages.
func allChannels(t *testing.T, r contract, prefix string, limit int) []string {
	t.Helper()
	var all []string
	for cursor := ""; ; {
		names, next, err := r.Channels(t.Context(), prefix, cursor, limit)
		ok(t, err)
		all = append(all, names...)
		if next == "" {
			slices.Sort(all)
			return slices.Compact(all)
		}
		cursor = next
	}
}
