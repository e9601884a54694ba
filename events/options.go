package events

import (
	"fmt"
	"strings"
	"time"
)

const (
	// Grace is how long a user or channel must be gone before that is told: a reconnect is no event.
	Grace = 5 * time.Second
	// Retention is how long anything stays in the store that nobody writes to.
	Retention = 7 * 24 * time.Hour
	// maxPageBytes is about the most that one delivery holds.
	maxPageBytes = 1 << 20
)

// bounds are those of one shard.
type bounds struct {
	due, out, dead                  int
	watchBytes, outBytes, deadBytes int
}

var defaultBounds = bounds{
	due: 100_000, watchBytes: 32 << 20,
	out: 10_000, outBytes: 16 << 20,
	dead: 1000, deadBytes: 4 << 20,
}

// StoreOptions configures a store.
type StoreOptions struct {
	// Prefix stands before every key in Redis, like "prod:". Zero means none.
	Prefix string
	// Now is the clock of a [Memory]; [Redis] goes by its own. Zero means time.Now.
	Now func() time.Time
}

// Validate names the first option that cannot be used.
func (o StoreOptions) Validate() error {
	if strings.ContainsAny(o.Prefix, "{}") {
		return fmt.Errorf("events: Prefix %q has a brace: all keys would share its Redis Cluster slot", o.Prefix)
	}
	return nil
}
