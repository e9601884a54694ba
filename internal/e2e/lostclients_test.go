//go:build long

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/testbed"

	"github.com/redis/go-redis/v9"
)

// lostClients is the number of clients that never return after their broker is killed. Only the
// janitor can release them.
const lostClients = 5

// lostChannel is the channel that only the lost clients subscribe to.
const lostChannel = "lost-channel"

// connectLostClients connects the lost clients to one broker.
func connectLostClients(ctx context.Context, t *testing.T, b *testbed.Broker) {
	t.Helper()
	for i := range lostClients {
		connectDevice(ctx, t, b, "lost", fmt.Sprint("lost-", i), lostChannel)
	}
}

// checkReleased checks that the janitor has released the lost clients and their channel.
func checkReleased(ctx context.Context, t *testing.T, rdb *redis.Client) {
	t.Helper()
	users := rdb.HGetAll(ctx, "u_{lost}").Val()
	for i := range lostClients {
		client := fmt.Sprintf("lost/lost-%d", i)
		if at := users[client]; !strings.HasPrefix(at, ":") {
			t.Errorf("the user's entry of client %s names server %q, want none", client, at)
		}
		if server, err := rdb.HGet(ctx, "c_{"+client+"}", "server").Result(); server != "" || err != nil {
			t.Errorf("%s is bound to %q (%v)", client, server, err)
		}
	}
	if rdb.Exists(ctx, "ch_{"+lostChannel+"}").Val() != 0 || rdb.SIsMember(ctx, "ch_list", lostChannel).Val() {
		t.Error("the channel of the lost clients is still bound or listed")
	}
}
