package broker_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
)

// halfOpen is what a connection sends that never says connect.
var halfOpen = []string{
	"",
	`{"type":"conn`,
	"GET /ws HTTP/1.1\r\nHost: localhost\r\n",
	"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
}

// TestCrowdFromOneAddress has 10,000 connections from one address come, begin with what they should say, and stay. They
// get the places that one address may have, and not for long; meanwhile there is room for all others.
func TestCrowdFromOneAddress(t *testing.T) {
	const crowd, each, room = 10_000, 100, 150
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Limits.AddressConnections, o.Limits.Connections, o.Timing.Connect = each, room, 5*time.Second // a second is short for a machine with other things to do
	})
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	var all sync.WaitGroup
	for n := range crowd {
		c, err := from.Dial("tcp", []string{i.TCP, i.HTTP}[n%2])
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { // it stays until it is closed
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(2 * patience))
			_, _ = io.WriteString(c, halfOpen[n/2%len(halfOpen)])
			if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Errorf("%q holds its connection", halfOpen[n/2%len(halfOpen)])
			}
		})
		if n%(crowd/10) == 0 { // beside it
			dialLines(t, net.Dialer{}, i.TCP).connect(fmt.Sprint("line-", n), "")
			dialWS(t, "ws://"+i.HTTP+"/ws").connect(fmt.Sprint("page-", n), "")
		}
	}
	all.Wait()
	if text := metricsOf(t, i); !strings.Contains(text, `switchboard_refusals_total{what="address_connections"}`) {
		t.Error("nobody was refused")
	}
	for _, addr := range []string{i.TCP, i.HTTP} {
		await.True(t, "the crowd has left its places", func() bool {
			c, err := from.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(patience))
			_, _ = io.WriteString(c, halfOpen[3])
			answer := make([]byte, len("HTTP/1.1 101"))
			_, err = io.ReadFull(c, answer)
			return err == nil && string(answer) == "HTTP/1.1 101"
		})
	}
}
