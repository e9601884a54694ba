//go:build long

package attack

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"switchboard/internal/await"
)

// halfOpenConnections is the number of connections that stop in the middle of a request. The test
// and the broker are limited to 20,000 descriptors each.
const halfOpenConnections = 10_000

// partialRequests are the bytes that the connections send before they stop.
var partialRequests = []struct {
	http bool
	text string
}{
	{false, ""},
	{false, `{"type":"conn`},
	{false, "GET /ws HTTP/1.1\r\nHo"},
	{false, handshake("", "")},
	{true, ""},
	{true, "POST /v1/push HTTP/1.1\r\nHo"},
	{true, handshake("", "")},
	{true, handshake("", deflateOffer)},
}

// halfOpen opens the connections, each from an address of its own. It checks that other clients are
// still served, and that the broker closes all half-open connections.
func halfOpen(t *testing.T, s *scenario) {
	before := s.descriptors(t)
	conns := make([]*attacker, halfOpenConnections)
	var dialling sync.WaitGroup
	for part := range 4 {
		dialling.Go(func() {
			for i := part; i < halfOpenConnections; i += 4 {
				b := partialRequests[i%len(partialRequests)]
				a, err := s.dial(b.http, net.IPv4(127, byte(1+i>>16), byte(i>>8), byte(i)))
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
				a.sendRaw(b.text)
				conns[i] = a
			}
		})
	}
	dialling.Wait()
	t.Cleanup(func() {
		for _, a := range conns {
			if a != nil {
				_ = a.Close()
			}
		}
	})
	if t.Failed() {
		return
	}
	await.NoError(s.ctx, t, "the broker accepts all connections", func() error {
		if now := s.descriptors(t); now < before+halfOpenConnections*9/10 { // the first may already be closed
			return fmt.Errorf("%d descriptors, %d before", now, before)
		}
		return nil
	})
	s.checkService(t)
	for i, a := range conns {
		if _, err := a.discardAll(); err != nil {
			t.Fatalf("connection %d, after %q, is not closed: %v", i, partialRequests[i%len(partialRequests)].text, err)
		}
	}
	s.checkService(t)
}

// discardAll reads up to the end of the connection.
func (a *attacker) discardAll() (n int64, err error) {
	buf := make([]byte, 4<<10)
	for {
		k, err := a.Read(buf)
		n += int64(k)
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			return n, err
		}
		if err != nil {
			return n, nil
		}
	}
}
