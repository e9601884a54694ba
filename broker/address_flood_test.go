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

// halfOpen are inputs of connections that never send connect.
var halfOpen = []string{
	"",
	`{"type":"conn`,
	"GET /ws HTTP/1.1\r\nHost: localhost\r\n",
	"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
}

// TestAddressFlood: 10,000 connections from one address send part of a handshake and stay open. The
// limit of connections from one address bounds them, and the connect deadline closes them. Clients
// from other addresses connect meanwhile.
func TestAddressFlood(t *testing.T) {
	t.Parallel()
	const flood, perAddress, total = 10_000, 100, 150
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Limits.AddressConnections, o.Limits.Connections, o.Timing.Connect = perAddress, total, 5*time.Second // shorter deadlines fail on a busy machine
	})
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	var all sync.WaitGroup
	for n := range flood {
		c, err := from.Dial("tcp", []string{i.TCP, i.HTTP}[n%2])
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { // keeps the connection until the broker closes it
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(2 * testTimeout))
			_, _ = io.WriteString(c, halfOpen[n/2%len(halfOpen)])
			if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Errorf("%q: the broker did not close the connection", halfOpen[n/2%len(halfOpen)])
			}
		})
		if n%(flood/10) == 0 { // clients from another address
			dialLines(t, net.Dialer{}, i.TCP).connect(fmt.Sprint("line-", n), "")
			dialWS(t, "ws://"+i.HTTP+"/ws").connect(fmt.Sprint("page-", n), "")
		}
	}
	all.Wait()
	if text := metricsOf(t, i); !strings.Contains(text, `switchboard_refusals_total{what="address_connections"}`) {
		t.Error("no connection was refused")
	}
	for _, addr := range []string{i.TCP, i.HTTP} {
		await.True(t, "the address may connect again", func() bool {
			c, err := from.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(testTimeout))
			_, _ = io.WriteString(c, halfOpen[3])
			answer := make([]byte, len("HTTP/1.1 101"))
			_, err = io.ReadFull(c, answer)
			return err == nil && string(answer) == "HTTP/1.1 101"
		})
	}
}
