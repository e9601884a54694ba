package account_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/kit/kittest"
)

// onlineMetric returns the value of switchboard_online_users, or "".
func onlineMetric(t *testing.T, b *kittest.Broker) string {
	t.Helper()
	resp, err := http.Get("http://" + b.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "switchboard_online_users "); found {
			return value
		}
	}
	return ""
}

// TestOnlineUsersAreDistinct checks that a user with connections on two brokers is counted once, by
// the call and by the metric of each broker, and that the users of a broker that is killed are not
// counted after its lease has ended.
func TestOnlineUsersAreDistinct(t *testing.T) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		a := s.Start(t, nil)
		b, other := a, s
		if s.Shared {
			other = kittest.OpenRedis(newClient(t, s), s.Prefix)
			b = other.Start(t, nil)
		}
		connect := func(at *kittest.Broker, user, device string) {
			at.Connect(t, user, func(o *client.Options) { o.Client = device })
		}
		connect(a, "amy", "phone")
		connect(b, "amy", "tablet")
		connect(a, "bob", "phone")
		connect(b, "cat", "phone")
		connect(b, "cat", "tablet")
		awaitCount := func(at *kittest.Broker, want string) {
			t.Helper()
			await.True(t, "the users are "+want, func() bool {
				o := at.OK(t, "GET", "/v1/users?limit=0", "")
				return fmt.Sprint(o["distinct"], o["exact"]) == want+" true" && onlineMetric(t, at) == want
			})
		}
		awaitCount(a, "3")
		awaitCount(b, "3")
		if page := a.OK(t, "GET", "/v1/users?limit=1", ""); page["distinct"] == nil {
			t.Errorf("the first page is %v", page)
		} else if page = a.OK(t, "GET", "/v1/users?limit=1&cursor="+fmt.Sprint(page["cursor"]), ""); page["distinct"] != nil {
			t.Errorf("the second page is %v", page)
		}
		if s.Shared {
			_ = other.Redis.Close() // without a word to the store
			b.Stop()
			awaitCount(a, "2")
		}
	})
}

// newClient returns another client of the Redis of a store.
func newClient(t *testing.T, s kittest.Store) redis.UniversalClient {
	if _, isCluster := s.Redis.(*redis.ClusterClient); isCluster {
		return kittest.Cluster.Client(t)
	}
	return kittest.Redis.Client(t)
}
