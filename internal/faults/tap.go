package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A tap's side towards the broker is narrow: with the loopback interface's own segment
	// size the kernel would hold megabytes for a client that does not read, and the broker
	// would never notice.
	tapSegment = 1400
	tapBuffer  = 8 << 10
)

// cutting is when a line is cut.
type cutting int

const (
	now         cutting = iota + 1 // with nothing on its way, most likely
	afterNext                      // when the next message has reached the client, whose acknowledgement is lost
	insteadNext                    // in place of the next message, which the broker has written
	cuttings    = 3
)

// tap is the line of one client: it can be cut, and it can stop being read. A new connection
// goes to the next broker that takes it.
type tap struct {
	listener  net.Listener
	upstreams []string
	wg        sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	next   int
	conns  map[net.Conn]bool
	held   chan struct{} // closed when reading goes on; nil while it does
	due    cutting       // with the next message; zero for none
	closed bool
}

func newTap(upstreams []string, first int) (*tap, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &tap{listener: l, upstreams: upstreams, next: first, conns: map[net.Conn]bool{}}
	t.wg.Go(t.serve)
	return t, nil
}

func (t *tap) addr() string { return t.listener.Addr().String() }

func (t *tap) serve() {
	for {
		near, err := t.listener.Accept()
		if err != nil {
			return
		}
		t.wg.Go(func() { t.join(near) })
	}
}

// join ties a connection to a broker, until either ends or the tap is cut.
func (t *tap) join(near net.Conn) {
	defer near.Close()
	far := t.dial()
	if far == nil {
		return
	}
	defer far.Close()
	if !t.keep(near, far) {
		return
	}
	defer t.drop(near, far)
	done := make(chan struct{}, 2)
	t.wg.Go(func() {
		t.copyUp(far, near)
		done <- struct{}{}
	})
	t.wg.Go(func() {
		t.copyDown(near, far)
		done <- struct{}{}
	})
	<-done
}

// dial tries all brokers once, from the next one on.
func (t *tap) dial() net.Conn {
	dialer := net.Dialer{Timeout: time.Second, Control: narrow}
	for range t.upstreams {
		t.mu.Lock()
		upstream := t.upstreams[t.next%len(t.upstreams)]
		t.next++
		t.mu.Unlock()
		if c, err := dialer.DialContext(context.Background(), "tcp", upstream); err == nil {
			return c
		}
	}
	return nil
}

func narrow(_, _ string, raw syscall.RawConn) error {
	var err error
	if ctl := raw.Control(func(fd uintptr) {
		if err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, tapSegment); err == nil {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, tapBuffer)
		}
	}); ctl != nil {
		return ctl
	}
	return err
}

// copyUp moves bytes to the broker.
func (t *tap) copyUp(far, near net.Conn) {
	_, _ = io.Copy(far, near)
}

// copyDown moves bytes to the client, while they are to be read.
func (t *tap) copyDown(near, far net.Conn) {
	buf := make([]byte, 4<<10)
	for {
		t.mu.Lock()
		held := t.held
		t.mu.Unlock()
		if held != nil {
			<-held
		}
		n, err := far.Read(buf)
		if err != nil {
			return
		}
		t.mu.Lock()
		due := t.due
		t.due = 0
		t.mu.Unlock()
		if due != insteadNext {
			_, err = near.Write(buf[:n])
		}
		if due != 0 {
			reset(far) // and near ends in order, so that the client reads what it got
			return
		}
		if err != nil {
			return
		}
	}
}

func (t *tap) keep(conns ...net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range conns {
		t.conns[c] = true
	}
	return !t.closed
}

func (t *tap) drop(conns ...net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range conns {
		delete(t.conns, c)
	}
}

// cut ends all connections, now or with the next message; the next one goes to another broker.
func (t *tap) cut(when cutting) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if when != now {
		t.due = when
		return
	}
	for c := range t.conns {
		reset(c)
	}
}

// reset ends a connection so that the other side sees an error, and none of what waits.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// cutNow cuts the line of a client.
func cutNow(t *tap) { t.cut(now) }

// cutAny cuts it in one way or another.
func cutAny(random *rand.Rand) func(*tap) {
	return func(t *tap) { t.cut(cutting(1 + random.IntN(cuttings))) }
}

// hold stops reading what the broker sends, flow goes on with it.
func (t *tap) hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held = make(chan struct{})
	}
}

func (t *tap) flow() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held != nil {
		close(t.held)
		t.held = nil
	}
}

// close ends the tap and waits for all it started.
func (t *tap) close() {
	_ = t.listener.Close()
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.flow()
	t.cut(now)
	t.wg.Wait()
}
