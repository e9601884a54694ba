package kit

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"

	"switchboard/internal/wire"
)

// CheckKey checks the idempotency key of a call that creates something, and the id that the call
// names instead.
func CheckKey(id, key string) error {
	switch {
	case key == "":
		return nil
	case id != "":
		return wire.Errorf(wire.BadRequest, "key: it is for a call without an id")
	}
	return wire.CheckName("key", key)
}

// KeyedID returns the id of what a user creates with an idempotency key: the same id for each
// repeated call. The keys of different users differ. The user of a backend is "".
func KeyedID(user, key string) string {
	sum := sha256.Sum256([]byte(user + "\n" + key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// FormerName returns the value of a member that has a former name. A call names one of them.
func FormerName[T comparable](name string, value T, former string, old T) (T, error) {
	var zero T
	switch {
	case old == zero:
		return value, nil
	case value == zero:
		return old, nil
	}
	return zero, wire.Errorf(wire.BadRequest, "%s: it is the former name of %s, which the call has, too", former, name)
}

// TTL returns the duration of ttl_ms, in milliseconds, or of its former name ttl, in seconds.
func TTL(ms, seconds int64, most time.Duration) (time.Duration, error) {
	switch {
	case ms < 0 || ms > most.Milliseconds():
		return 0, wire.Errorf(wire.BadRequest, "ttl_ms: it must be between 0 and %d", most.Milliseconds())
	case seconds < 0 || seconds > int64(most/time.Second):
		return 0, wire.Errorf(wire.BadRequest, "ttl: it must be between 0 and %d seconds", int64(most/time.Second))
	}
	return FormerName("ttl_ms", time.Duration(ms)*time.Millisecond, "ttl", time.Duration(seconds)*time.Second)
}
