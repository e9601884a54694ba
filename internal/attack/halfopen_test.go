package attack

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"switchboard/internal/await"
)

// doors is how many connections are begun, and never gone on with. Both ends count against a limit of 20,000
// descriptors for each process.
const doors = 10_000

// beginnings are how far they get; what is empty says nothing at all.
var beginnings = []struct {
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
	{true, handshake("", deflate)},
}

// halfOpen begins them from as many addresses, looks whether there is room for others all the same, and sees the broker
// end every one of them.
func halfOpen(t *testing.T, s *siege) {
	before := s.descriptors(t)
	conns := make([]*assailant, doors)
	var dialling sync.WaitGroup
	for part := range 4 {
		dialling.Go(func() {
			for i := part; i < doors; i += 4 {
				b := beginnings[i%len(beginnings)]
				a, err := s.dial(b.http, net.IPv4(127, byte(1+i>>16), byte(i>>8), byte(i)))
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
				a.raw(b.text)
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
	await.NoError(s.ctx, t, "the broker has them all", func() error {
		if now := s.descriptors(t); now < before+doors*9/10 { // the first may be gone again
			return fmt.Errorf("%d descriptors, %d before", now, before)
		}
		return nil
	})
	s.holds(t)
	for i, a := range conns {
		if _, err := a.drained(); err != nil {
			t.Fatalf("connection %d, begun with %q, is never ended: %v", i, beginnings[i%len(beginnings)].text, err)
		}
	}
	s.holds(t)
}

// drained reads up to the end of the connection, whatever comes.
func (a *assailant) drained() (n int64, err error) {
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
