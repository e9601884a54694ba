package transport

import (
	"net"
	"net/http"
	"testing"

	"github.com/rs/zerolog"

	"switchboard/broker/loop"
	"switchboard/internal/wire"
)

// TestNotHandedOver checks which connections stay with the library: those with compression or with
// an invalid handshake. It also checks zoneless, and a Poller that does not run.
func TestNotHandedOver(t *testing.T) {
	const offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n"
	for name, test := range map[string]struct {
		compress bool
		header   string
		library  bool
	}{
		"compression":           {true, offer, true},
		"compression here only": {true, "", false},
		"an offer":              {false, offer, false},
		"an unusual key":        {false, "Sec-WebSocket-Key: another\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			kept := make(chan bool, 1)
			w := way{"", true, false, func(s *service, limits Limits, accept Accept, o setup) func() {
				p, stop := runPoller(s, limits, accept, o)
				web := NewWeb(1, 1, limits, dialects(), func(l *loop.Loop, c Conn, first []wire.Request) Receiver {
					kept <- true
					return accept(l, c, first)
				})
				web.Poller = p
				end := serveWeb(s, web, limits, o)
				return func() { stop(); end() }
			}}
			service := w.serve(t, setup{compress: test.compress})
			p := service.dial()
			p.write([]byte(upgradeRequest(wsPath, test.header)))
			resp := p.response()
			if resp.StatusCode != http.StatusSwitchingProtocols {
				if !test.library || resp.StatusCode != http.StatusBadRequest {
					t.Fatal(resp.Status)
				}
				return
			}
			if got, want := resp.Header.Get("Sec-WebSocket-Extensions") != "", test.compress && test.header != ""; got != want {
				t.Errorf("compression is agreed on: %v, want %v", got, want)
			}
			service.session()
			if got := len(kept) > 0; got != test.library {
				t.Errorf("it stays with the library: %v, want %v", got, test.library)
			}
		})
	}
	p := NewPoller(1, 0, Limits{Gate: NewGate(1)}, Dialects{}, nil, zerolog.Nop())
	plain, zoned := &net.TCPAddr{IP: net.IPv6loopback}, &net.TCPAddr{IP: net.IPv6loopback, Zone: "eth0"}
	if !zoneless(plain) || zoneless(zoned) || zoneless(nil) {
		t.Error("zoneless is wrong about zones")
	}
	if p.canAdopt(&gatedConn{Conn: new(net.TCPConn), place: &place{gate: p.limits.Gate}}) {
		t.Error("a Poller that does not run takes connections")
	}
}

// TestHandOverAtTheEnd hands a connection over to a Poller that has ended. The connection is
// closed and its place is free again.
func TestHandOverAtTheEnd(t *testing.T) {
	ended := way{"", true, false, func(s *service, limits Limits, accept Accept, o setup) func() {
		p, stop := runPoller(s, limits, accept, o)
		stop()
		web := NewWeb(1, 1, limits, dialects(), accept)
		web.Poller = p
		return serveWeb(s, web, limits, o)
	}}
	service := ended.serve(t, setup{})
	p := service.dial()
	p.handshake(wsPath)
	if e := p.read(); e.kind != "end" && e.kind != "failure" {
		t.Fatalf("the peer reads %v", e)
	}
	service.stop()
	if n := service.gate.count.Load(); n != 0 || len(service.sessions) != 0 {
		t.Errorf("%d places are taken, %d sessions were made", n, len(service.sessions))
	}
}
