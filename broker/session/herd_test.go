//go:build long

package session_test

import (
	"testing"
	"testing/synctest"

	"switchboard/broker/session"
	"switchboard/broker/transport"
	"switchboard/internal/wire"
)

// TestHerdOfResumesIsNotRefused has thousands of clients resume at once, as after the death of a
// broker. What the store sends for them must not exceed their rates: each one gets all that it has
// missed, and may go on.
func TestHerdOfResumesIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, missed, own = 2000, 20, 10
		h := newHarness(t, session.Options{Limits: session.Limits{MessageRate: 500, ByteRate: 2 << 20}})
		h.tick(1)
		first := h.store(missed+1, 2<<10)
		socks, receivers := make([]*socket, clients), make([]transport.Receiver, clients)
		for i := range socks {
			socks[i] = newSocket()
			h.onLoop(func() {
				r := h.Accept(h.loop, socks[i], nil)
				receivers[i] = r
				receive(r, `{"type":"connect","client":"herd-%d"}`, i)
				receive(r, `{"type":"subscribe","channel":"news","after":%d}`, first)
				for n := range own {
					receive(r, `{"type":"subscribe","channel":"own-%d-%d","after":0}`, i, n)
				}
			})
		}
		h.settle()
		for i, sock := range socks {
			h.onLoop(func() { receive(receivers[i], `{"type":"ping"}`) })
			h.settle()
			h.onLoop(func() {
				count := map[string]int{}
				for _, e := range sock.written {
					count[e.Type]++
				}
				if sock.closed != "" || count[wire.TypeError] > 0 || count[wire.TypeMessage] != missed || count[wire.TypeSubscribed] != own+1 || count[wire.TypePong] != 1 {
					t.Errorf("client %d received %v; closed: %q", i, count, sock.closed)
				}
			})
		}
	})
}
