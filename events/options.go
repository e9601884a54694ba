package events

import (
	"fmt"
	"strings"
	"time"
)

const (
	// Grace is how long a user or channel must be absent before its absence is reported, so that a
	// reconnect makes no event.
	Grace = 5 * time.Second
	// Retention is the time after which the store deletes keys that are not written to.
	Retention = 7 * 24 * time.Hour
	// maxBatchBytes is the largest size of a batch. A single larger event is a batch of its own.
	maxBatchBytes = 1 << 20
)

// limits are the limits of one shard.
type limits struct {
	due, fields, outbox, deadLetters            int
	deadlineBytes, outboxBytes, deadLetterBytes int
}

var defaultLimits = limits{
	due: 100_000, deadlineBytes: 32 << 20,
	fields: 50_000, // half of the due list, so that long leases leave room for users
	outbox: 10_000, outboxBytes: 16 << 20,
	deadLetters: 1000, deadLetterBytes: 4 << 20,
}

// StoreOptions configures a store.
type StoreOptions struct {
	// Prefix precedes every key in Redis, for example "prod:". Zero means none.
	Prefix string
	// Now is the clock of a [Memory]. [Redis] uses the clock of the server. Zero means time.Now.
	Now func() time.Time
}

// Validate returns an error that names the first invalid option.
func (o StoreOptions) Validate() error {
	if strings.ContainsAny(o.Prefix, "{}") {
		return fmt.Errorf("events: Prefix %q has a brace: all keys would share its Redis Cluster slot", o.Prefix)
	}
	return nil
}
