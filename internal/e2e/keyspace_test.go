package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// nobodyOnline checks what is remembered of users and clients.
func nobodyOnline(ctx context.Context, t *testing.T, rdb *redis.Client, cast []member) {
	t.Helper()
	for _, m := range cast {
		if server := rdb.HGet(ctx, "c_{"+m.Client+"}", "server").Val(); server != "" {
			t.Errorf("client %s is still bound to %s", m.Client, server)
		}
		if at, err := rdb.HGet(ctx, "u_{"+m.User+"}", m.Client).Result(); err != nil || !strings.HasPrefix(at, ":") {
			t.Errorf("user %s has client %s at %q (%v), want it offline", m.User, m.Client, at, err)
		}
	}
}
