package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// ghosts is how many clients die with their broker: nobody but the janitor will say so.
const ghosts = 5

// ghostTown is the channel that only they follow.
const ghostTown = "ghost-town"

// haunt connects clients that never come back to one broker.
func haunt(ctx context.Context, t *testing.T, b *instance) {
	t.Helper()
	for i := range ghosts {
		connectDevice(ctx, t, b, "ghost", fmt.Sprint("ghost-", i), ghostTown)
	}
}

// exorcised checks that the janitor has released the ghosts and left the town.
func exorcised(ctx context.Context, t *testing.T, rdb *redis.Client) {
	t.Helper()
	users := rdb.HGetAll(ctx, "u_{ghost}").Val()
	for i := range ghosts {
		client := fmt.Sprintf("ghost/ghost-%d", i)
		if at := users[client]; !strings.HasPrefix(at, ":") {
			t.Errorf("the user of %s has it at %q, want it offline", client, at)
		}
		if server, err := rdb.HGet(ctx, "c_{"+client+"}", "server").Result(); server != "" || err != nil {
			t.Errorf("%s is bound to %q (%v)", client, server, err)
		}
	}
	if rdb.Exists(ctx, "ch_{"+ghostTown+"}").Val() != 0 || rdb.SIsMember(ctx, "ch_list", ghostTown).Val() {
		t.Error("the channel of the ghosts is still bound or listed")
	}
}
