package registry

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"switchboard/internal/setting"
)

// Options configures a registry. Zero means the default in a field's tag, if it has one.
type Options struct {
	// Prefix begins every key in Redis, like "prod:". Zero means none.
	Prefix string
	// Lease is how long a server counts as live after a beat. Zero means 10 s.
	Lease time.Duration
	// UserTTL is how long the clients of a user are known after the last BindUsers for any of them.
	// Zero means 150 min.
	UserTTL time.Duration
	// MaxOnline is the most clients of one user that may be online, up to MaxClients. Zero means
	// MaxClients.
	MaxOnline  int           `setting:"limits.user_connections" zero:"true" unset:"default 64" help:"clients of one user online at once, on all instances; at most 64"`
	RevokedTTL time.Duration `setting:"times.revoked_ttl" default:"720h" help:"how long revoked tokens are refused: at least as long as your tokens live"`
	// SubscribedTTL is how long the subscriptions that the backend has made are kept after the last
	// call or renewal. Zero means 24 h, or UserTTL if that is longer.
	SubscribedTTL time.Duration
	// TombstoneTTL is how long a server stays declared dead. Zero means 24 h.
	TombstoneTTL time.Duration
	// Now is the clock of [Memory]. [Redis] uses the clock of its server. Zero means time.Now.
	Now func() time.Time
}

// Validate returns an error that names the first invalid option.
func (o Options) Validate() error {
	if strings.ContainsAny(o.Prefix, "{}") {
		return fmt.Errorf("registry: Prefix %q has a brace: all keys would share its Redis Cluster slot", o.Prefix)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Lease", o.Lease}, {"UserTTL", o.UserTTL}, {"RevokedTTL", o.RevokedTTL},
		{"SubscribedTTL", o.SubscribedTTL}, {"TombstoneTTL", o.TombstoneTTL}} {
		if d.value != 0 && d.value < time.Millisecond {
			return fmt.Errorf("registry: %s %v is below 1 ms, the resolution of a TTL", d.name, d.value)
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	setting.Fill(&o)
	o.Lease = cmp.Or(o.Lease, 10*time.Second)
	o.UserTTL = cmp.Or(o.UserTTL, 150*time.Minute)
	o.SubscribedTTL = cmp.Or(o.SubscribedTTL, max(24*time.Hour, o.UserTTL))
	o.TombstoneTTL = cmp.Or(o.TombstoneTTL, 24*time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
