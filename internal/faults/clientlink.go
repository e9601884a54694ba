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
	// The socket towards the broker has a small segment size and buffer. With the loopback
	// interface's defaults the kernel would buffer megabytes for a client that does not read, and
	// the broker would never notice.
	linkSegment = 1400
	linkBuffer  = 8 << 10
)

// cutTime says when a connection is cut.
type cutTime int

const (
	immediately      cutTime = iota + 1 // mostly while no message is in transit
	afterMessage                        // after the next message has reached the client; its acknowledgement is lost
	insteadOfMessage                    // instead of delivering the next message, which the broker has written
)

// cutTimeCount is the number of cut times.
const cutTimeCount = 3

// clientLink is a proxy between one client and the brokers. It can be cut, and it can stop reading.
// Each new connection goes to the next broker that accepts it.
type clientLink struct {
	listener  net.Listener
	upstreams []string
	wg        sync.WaitGroup

	mu         sync.Mutex // guards the fields below
	next       int
	conns      map[net.Conn]bool
	resume     chan struct{} // closed when reading resumes; nil while the link reads
	pendingCut cutTime       // cut at the next message; zero means none
	closed     bool
}

func newClientLink(upstreams []string, first int) (*clientLink, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	link := &clientLink{listener: l, upstreams: upstreams, next: first, conns: map[net.Conn]bool{}}
	link.wg.Go(link.serve)
	return link, nil
}

func (l *clientLink) addr() string { return l.listener.Addr().String() }

func (l *clientLink) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.relay(client) })
	}
}

// relay connects a client to a broker until either side ends or the link is cut.
func (l *clientLink) relay(client net.Conn) {
	defer client.Close()
	broker := l.dial()
	if broker == nil {
		return
	}
	defer broker.Close()
	if !l.track(client, broker) {
		return
	}
	defer l.untrack(client, broker)
	done := make(chan struct{}, 2)
	l.wg.Go(func() {
		l.copyUp(broker, client)
		done <- struct{}{}
	})
	l.wg.Go(func() {
		l.copyDown(client, broker)
		done <- struct{}{}
	})
	<-done
}

// dial tries all brokers once, starting with the next one.
func (l *clientLink) dial() net.Conn {
	dialer := net.Dialer{Timeout: time.Second, Control: limitBuffers}
	for range l.upstreams {
		l.mu.Lock()
		upstream := l.upstreams[l.next%len(l.upstreams)]
		l.next++
		l.mu.Unlock()
		if c, err := dialer.DialContext(context.Background(), "tcp", upstream); err == nil {
			return c
		}
	}
	return nil
}

func limitBuffers(_, _ string, raw syscall.RawConn) error {
	var err error
	if ctl := raw.Control(func(fd uintptr) {
		if err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, linkSegment); err == nil {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, linkBuffer)
		}
	}); ctl != nil {
		return ctl
	}
	return err
}

// copyUp copies bytes to the broker.
func (l *clientLink) copyUp(broker, client net.Conn) {
	_, _ = io.Copy(broker, client)
}

// copyDown copies bytes to the client, unless reading has stopped.
func (l *clientLink) copyDown(client, broker net.Conn) {
	buf := make([]byte, 4<<10)
	for {
		l.mu.Lock()
		resume := l.resume
		l.mu.Unlock()
		if resume != nil {
			<-resume
		}
		n, err := broker.Read(buf)
		if err != nil {
			return
		}
		l.mu.Lock()
		cut := l.pendingCut
		l.pendingCut = 0
		l.mu.Unlock()
		if cut != insteadOfMessage {
			_, err = client.Write(buf[:n])
		}
		if cut != 0 {
			reset(broker) // the client's side closes normally, so that the client reads what arrived
			return
		}
		if err != nil {
			return
		}
	}
}

func (l *clientLink) track(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = true
	}
	return !l.closed
}

func (l *clientLink) untrack(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		delete(l.conns, c)
	}
}

// cut ends all connections, immediately or at the next message.
func (l *clientLink) cut(when cutTime) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if when != immediately {
		l.pendingCut = when
		return
	}
	for c := range l.conns {
		reset(c)
	}
}

// reset closes a connection with RST and discards unsent data.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// cutNow cuts a link immediately.
func cutNow(l *clientLink) { l.cut(immediately) }

// cutAny returns a function that cuts a link at a random cutTime.
func cutAny(random *rand.Rand) func(*clientLink) {
	return func(l *clientLink) { l.cut(cutTime(1 + random.IntN(cutTimeCount))) }
}

// stopReading stops reading from the broker until resumeReading.
func (l *clientLink) stopReading() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resume == nil {
		l.resume = make(chan struct{})
	}
}

func (l *clientLink) resumeReading() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resume != nil {
		close(l.resume)
		l.resume = nil
	}
}

// close closes the link and waits for its goroutines.
func (l *clientLink) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.resumeReading()
	l.cut(immediately)
	l.wg.Wait()
}
