package registry

import (
	"testing"
	"time"
)

func TestOptionsValidate(t *testing.T) {
	for _, good := range []Options{{}, {Prefix: "prod:", Lease: time.Millisecond}} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
	for want, bad := range map[string]Options{
		`registry: Prefix "{a}" has a brace: all keys would share its Redis Cluster slot`: {Prefix: "{a}"},
		"registry: Lease -1s is below 1 ms, the resolution of a TTL":                      {Lease: -time.Second},
		"registry: UserTTL 1ns is below 1 ms, the resolution of a TTL":                    {UserTTL: 1},
		"registry: TombstoneTTL 1µs is below 1 ms, the resolution of a TTL":               {TombstoneTTL: time.Microsecond},
	} {
		if err := bad.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
