package broker_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/broker"
	"switchboard/internal/redistest"
	"switchboard/queue"
)

// storedBurst is what a user or an address may store at once in the tests of this file, and
// storedStep is what a server may add before it knows what the others have stored.
const (
	storedBurst = 1 << 20
	storedStep  = storedBurst / 64
)

// hoard publishes on a new connection until it is refused, and returns the bytes that were stored.
func (i instance) hoard(t *testing.T, user string) (stored int) {
	t.Helper()
	p := dialLines(t, net.Dialer{}, i.TCP)
	p.connect("hoarder", user)
	data := strings.Repeat("x", 4000)
	for {
		p.send(`{"type":"publish","channel":"hoard","data":%q,"ref":3}`, data)
		switch got := p.receive(); got["type"] {
		case "published":
			stored += len(data) + 2
		case "error":
			if got["code"] != "rate_limited" || !strings.Contains(fmt.Sprint(got["message"]), "limits.user_stored") {
				t.Fatalf("got %v", got)
			}
			return stored
		default:
			t.Fatalf("got %v", got)
		}
	}
}

// TestBrokersShareWhatAUserMayStore stores as much as a user may on three brokers, after
// reconnects, and after a restart.
func TestBrokersShareWhatAUserMayStore(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	limits := func(o *broker.Options) { o.Limits.UserStored = storedBurst }
	for name, client := range map[string]redis.UniversalClient{"one Redis": shared.Client(t), "a Cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			s, _ := redisStore(t, client, testBeat)
			brokers := startThree(t, s, limits)
			stored := 0
			for range 3 {
				for _, b := range brokers {
					stored += b.hoard(t, "amy")
				}
			}
			if stored < storedBurst || stored > storedBurst+4*storedStep {
				t.Errorf("amy stored %d bytes on three brokers", stored)
			}
			for _, b := range brokers { // each knows what all have stored, up to their last steps
				_, answer := b.call(t, "GET", "/v1/users/amy/budget", "")
				bytes := answer["stored"].(object)["bytes"].(object)
				if used, err := bytes["used"].(json.Number).Int64(); err != nil || used < storedBurst-4*storedStep || fmt.Sprint(bytes["max"]) != fmt.Sprint(storedBurst) {
					t.Errorf("the budget is %v, %v", answer, err)
				}
			}
			if err := brokers[0].stop(); err != nil {
				t.Fatal(err)
			}
			if n := start(t, s, limits).hoard(t, "amy"); n > 2*storedStep {
				t.Errorf("amy stored %d bytes on a broker that has begun", n)
			}
			if n := brokers[1].hoard(t, "bob"); n < storedBurst {
				t.Errorf("bob stored %d bytes", n)
			}
		})
	}
	t.Run("memory", func(t *testing.T) {
		b := start(t, memoryStore(queue.Options{}), limits)
		stored := b.hoard(t, "amy") + b.hoard(t, "amy")
		if stored < storedBurst || stored > storedBurst+storedStep {
			t.Errorf("amy stored %d bytes", stored)
		}
	})
}
