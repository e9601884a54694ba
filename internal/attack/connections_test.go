//go:build long

package attack

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"switchboard/internal/await"
)

const (
	maxConnections = 300
	maxPerAddress  = 60 // connections from one address
)

// TestConnectionLimits attacks a broker that has low limits with more connections than it allows.
func TestConnectionLimits(t *testing.T) {
	s := newScenario(t, newIssuer(t), fmt.Sprintf("max_connections: %d\nlimits: {address_connections: %d}", maxConnections, maxPerAddress), "")
	t.Run("all connections", func(t *testing.T) { exhaustConnections(t, s) })
	t.Run("all connections, unauthenticated", func(t *testing.T) { unauthenticatedConnections(t, s) })
	t.Run("from one address", func(t *testing.T) { exhaustAddress(t, s) })
	s.finish(t)
}

// exhaustAddress opens more connections than the limit of one address, on both ports.
func exhaustAddress(t *testing.T, s *scenario) {
	const attempts = 4 * maxPerAddress
	from := net.IPv4(127, 66, 6, 6)
	for i := range attempts {
		onHTTP := i%2 == 0
		a, err := s.dial(onHTTP, from)
		if err == nil && i < maxPerAddress {
			err = a.upgrade("", "") // after the response the broker has counted the connection
		}
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if i < maxPerAddress {
			continue
		}
		want := "closing:overloaded"
		if onHTTP {
			want = "HTTP 429"
		}
		got := a.outcome()
		_ = a.Close() // the broker limits how many refused connections it answers at a time
		if got != want {
			t.Errorf("connection %d, HTTP port %v: got %q, want %q", i, onHTTP, got, want)
		}
	}
	s.checkService(t)
}

// exhaustConnections opens as many connections as the broker allows. New clients are refused. The
// honest clients are not affected, and the backend can still connect because it has a reserve.
func exhaustConnections(t *testing.T, s *scenario) {
	before := s.descriptors(t)
	var held []*attacker
	take := func(onHTTP bool) *attacker {
		a, err := s.dial(onHTTP, net.IPv4(127, 77, 0, byte(1+len(held)%200)))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, a)
		return a
	}
	const backendConnections = 4 // largest number that the traffic's backend uses
	for range maxConnections - len(transports) - backendConnections {
		if err := take(false).upgrade("", ""); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 { // takes the rest: the backend may use fewer connections
		take(false)
	}
	if got := take(false).outcome(); got != "closing:overloaded" {
		t.Errorf("above the limit on the TCP port: got %q", got)
	}
	late := take(true)
	if _, err := io.WriteString(late, strings.Replace(handshake("", ""), "Connection: Upgrade", "Connection: Upgrade, close", 1)); err != nil {
		t.Fatal(err)
	}
	if got := late.outcome(); got != "HTTP 503" {
		t.Errorf("above the limit on the HTTP port: got %q", got)
	}
	s.traffic.waitRounds(s.ctx, t, minRounds)
	s.Client.CloseIdleConnections()
	if status, answer := s.call(s.ctx, t, http.MethodGet, "/v1/servers", ""); status != http.StatusOK {
		t.Errorf("the backend, on a new connection: %d %s", status, answer)
	}
	for _, a := range held {
		_ = a.Close()
	}
	await.NoError(s.ctx, t, "the connections are closed", func() error {
		if now := s.descriptors(t); now > before+maxConnections/10 {
			return fmt.Errorf("%d descriptors, %d before", now, before)
		}
		return nil
	})
	s.checkService(t)
}
