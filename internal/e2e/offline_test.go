package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// checkAllOffline checks that Redis has all clients as offline.
func checkAllOffline(ctx context.Context, t *testing.T, rdb *redis.Client, plans []clientPlan) {
	t.Helper()
	for _, m := range plans {
		if server := rdb.HGet(ctx, "c_{"+m.Client+"}", "server").Val(); server != "" {
			t.Errorf("client %s is still bound to %s", m.Client, server)
		}
		if at, err := rdb.HGet(ctx, "u_{"+m.User+"}", m.Client).Result(); err != nil || !strings.HasPrefix(at, ":") {
			t.Errorf("user %s has client %s on server %q (%v), want offline", m.User, m.Client, at, err)
		}
	}
}
