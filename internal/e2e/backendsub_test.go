//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/internal/textconn"
)

// TestSubscribeCallOfKilledBroker kills the broker that has stored a change of a client's
// subscriptions, before it reaches the broker that holds the client. That broker applies the change
// nevertheless: it hears of it from the store.
func TestSubscribeCallOfKilledBroker(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	link, err := newFlakyProxy("") // between the other brokers and the one that holds the client
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.stop)
	link.set(linkRefuses)
	holder := startBroker(t, "holder", server.URL(), nil, "--advertise", link.Addr().String())
	link.upstream = holder.HTTP
	link.set(linkUp)
	device := connectDevice(ctx, t, holder, "alice", "phone", "own")

	for n, kind := range []string{"subscribe", "unsubscribe"} {
		caller := startBroker(t, fmt.Sprint("caller-", n), server.URL(), nil)
		path := "/v1/users/alice/" + kind
		reached := fmt.Sprint("reached-", n)
		await.True(t, "the caller reaches the holder", func() bool {
			_, answer := call(ctx, t, caller, "POST", "/v1/clients/alice/phone/subscribe", fmt.Sprintf(`{"channels":[%q]}`, reached))
			var a struct{ Clients int }
			return json.Unmarshal([]byte(answer), &a) == nil && a.Clients == 1
		})
		expectChange(ctx, t, device, "subscribed", reached)

		link.set(linkSilent)
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			_, _, _ = caller.Do(ctx, "POST", path, `{"channels":["team"]}`)
		}()
		await.True(t, "the change is stored", func() bool { return stored(ctx, rdb, "u_s_{alice}", "team", kind) })
		end(ctx, t, caller, syscall.SIGKILL)
		<-killed
		expectChange(ctx, t, device, kind+"d", "team")
		link.set(linkUp)
	}
}

// stored reports whether the store has a change of a channel in a list of subscriptions.
func stored(ctx context.Context, rdb *redis.Client, list, channel, kind string) bool {
	entry := rdb.HGet(ctx, list, channel).Val()
	return entry != "" && entry[0] == map[string]byte{"subscribe": '+', "unsubscribe": '-'}[kind]
}

// expectChange reads the next event and checks its type and channel.
func expectChange(ctx context.Context, t *testing.T, device textconn.Conn, kind, channel string) {
	t.Helper()
	var event struct{ Type, Channel string }
	text, err := device.Receive(ctx)
	if err == nil {
		err = json.Unmarshal(text, &event)
	}
	if err != nil || event.Type != kind || event.Channel != channel {
		t.Fatalf("received %q (%v), want %s %s", text, err, kind, channel)
	}
}
