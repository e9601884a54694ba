package transport

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
)

// TestPlaceOfTLS checks that handlers know the place of a TLS connection, but not its TCP
// connection.
func TestPlaceOfTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	full := NewGate(0)
	encrypted := tls.NewListener(Listener{Listener: l, Gate: full, Reserve: NewGate(1)}, &tls.Config{Certificates: []tls.Certificate{{}}})
	defer encrypted.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := encrypted.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	place := gatedConnOf(ConnContext(context.Background(), c))
	if place == nil || !place.reserved {
		t.Fatal("the place is not known")
	}
	if place.Conn != nil {
		t.Error("the socket could be handed over")
	}
	p := &Poller{booted: make(chan struct{}), limits: Limits{Gate: full}}
	close(p.booted)
	if p.canAdopt(place) {
		t.Error("the Poller would take the connection over, without its TLS")
	}
}
