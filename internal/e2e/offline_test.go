//go:build long

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// checkAllOffline checks that all clients are offline in Redis.
func checkAllOffline(ctx context.Context, t *testing.T, rdb *redis.Client, plans []clientPlan) {
	t.Helper()
	for _, plan := range plans {
		if server := rdb.HGet(ctx, "c_{"+plan.Client+"}", "server").Val(); server != "" {
			t.Errorf("client %s is still bound to %s", plan.Client, server)
		}
		if at, err := rdb.HGet(ctx, "u_{"+plan.User+"}", plan.Client).Result(); err != nil || !strings.HasPrefix(at, ":") {
			t.Errorf("user %s has client %s on server %q (%v), want offline", plan.User, plan.Client, at, err)
		}
	}
}
