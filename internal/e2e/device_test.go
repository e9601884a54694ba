//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"

	"switchboard/internal/testbed"
	"switchboard/internal/textconn"
)

// connectDevice connects one client over TCP and subscribes it to a channel.
func connectDevice(ctx context.Context, t *testing.T, b *testbed.Broker, user, client, channel string) textconn.Conn {
	t.Helper()
	conn, err := textconn.DialTCP(ctx, net.Dialer{}, b.TCP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	for _, step := range []struct{ request, want string }{
		{fmt.Sprintf(`{"type":"connect","client":%q,"user":%q}`, client, user), "connected"},
		{fmt.Sprintf(`{"type":"subscribe","channel":%q}`, channel), "subscribed"},
	} {
		if err := conn.Send(ctx, step.request); err != nil {
			t.Fatal(err)
		}
		text, err := conn.Receive(ctx)
		var event struct{ Type string }
		if err == nil {
			err = json.Unmarshal(text, &event)
		}
		if err != nil || event.Type != step.want {
			t.Fatalf("%s received %q (%v), want %s", client, text, err, step.want)
		}
	}
	return conn
}
