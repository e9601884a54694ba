package swarm

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	bufferSize   = 256 << 10
	maxEvents    = 512
	pollInterval = 50 * time.Millisecond // without events, Until checks its condition at this interval
)

// Options configures a Swarm. Addr, Dialect, Connections and Channels are required.
type Options struct {
	Addr        string   // host:port
	Addrs       []string // instead of Addr: subscriber i connects to Addrs[i % len(Addrs)]
	Dialect     Dialect
	Connections int      // subscriber i subscribes to Channels[i % len(Channels)]
	Channels    []string // names
	Client      string   // prefix of the client ids, which end in a number

	PayloadSize int // of all messages, which are those of AppendSized. Zero means PayloadSize

	// Publishers is the number of concurrent publishers of one channel. Publisher p pushes the numbers
	// n with n % Publishers == p. The messages of one publisher must arrive in order. Zero means 1.
	Publishers int64
	// Latency receives the time since a message was due, in ns. Zero means that latency is not
	// measured.
	Latency func(ns int64)
	// Receive receives the number of each message instead of the checker, with the subscriber that
	// received it. Zero means that the checker checks all messages.
	Receive    func(subscriber int, n int64)
	MaxDialing int           // maximum number of connections being opened. Zero means 128
	Stall      time.Duration // waiting fails after this time without an event. Zero means 10 s
}

// Swarm is a set of subscribers. Only Wake may be called from other goroutines.
type Swarm struct {
	opts    Options
	epoll   int
	eventfd int
	targets []target

	conns      []conn
	opened     int // conns[:opened] have a socket
	openCalled bool
	checker    checker

	dialect      Dialect
	reconnecting bool // Reconnect was called; remains true
	buf          []byte
	epollEvents  []unix.EpollEvent

	dialing  int // connections between socket and ready
	ready    int
	events   int64 // events handled
	received int64 // messages
	reads    int64 // read calls that returned messages
}

// New creates a Swarm. It does not connect before Open.
func New(opts Options) (*Swarm, error) {
	opts.MaxDialing = cmp.Or(opts.MaxDialing, 128)
	opts.PayloadSize = cmp.Or(opts.PayloadSize, PayloadSize)
	opts.Stall = cmp.Or(opts.Stall, 10*time.Second)
	s := &Swarm{
		opts: opts, dialect: opts.Dialect, conns: make([]conn, opts.Connections),
		checker: checker{ids: make([][]int64, len(opts.Channels)), publishers: max(1, opts.Publishers)},
		buf:     make([]byte, bufferSize+maxMessage), epollEvents: make([]unix.EpollEvent, maxEvents),
	}
	for i := range s.conns {
		s.conns[i] = conn{fd: -1, progress: progress{channel: int32(i % len(opts.Channels))}}
	}
	var err error
	if s.targets, err = resolveAll(opts); err != nil {
		return nil, err
	}
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	if s.eventfd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, s.eventfd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), unix.Close(s.epoll))
	}
	return s, nil
}

// Open connects and subscribes all connections, at most MaxDialing at a time. With more, a full
// backlog would drop handshakes, and their retransmission would be measured.
func (s *Swarm) Open(ctx context.Context, progress func()) error {
	s.openCalled = true
	return s.Until(ctx, "open the connections", func() bool {
		progress()
		return s.ready == len(s.conns)
	})
}

// Until runs the loop until done returns true; it calls done after each poll. It fails when a
// connection fails, or after Options.Stall without an event.
func (s *Swarm) Until(ctx context.Context, what string, done func() bool) error {
	events, lastEvent := s.events, time.Now()
	for !done() {
		if err := s.poll(ctx, pollInterval); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if s.events != events {
			events, lastEvent = s.events, time.Now()
		} else if time.Since(lastEvent) > s.opts.Stall {
			return fmt.Errorf("%s: no event for %v; %d of %d connections are subscribed, %d messages were received",
				what, s.opts.Stall, s.ready, len(s.conns), s.received)
		}
	}
	return nil
}

// Idle runs the loop for d, so that pings are answered.
func (s *Swarm) Idle(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	for left := d; left > 0; left = time.Until(end) {
		if err := s.poll(ctx, left); err != nil {
			return err
		}
	}
	return nil
}

// poll handles the events that are ready. It waits at most d for the first.
func (s *Swarm) poll(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for s.openCalled && s.opened < len(s.conns) && s.dialing < s.opts.MaxDialing {
		if err := s.dial(s.opened); err != nil {
			return fmt.Errorf("%s: %w", s.describe(s.opened), err)
		}
		s.opened++
	}
	n, err := unix.EpollWait(s.epoll, s.epollEvents, int(d/time.Millisecond)+1)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("epoll_wait: %w", err)
	}
	for _, e := range s.epollEvents[:max(n, 0)] {
		s.events++
		if err := s.handle(int(e.Fd)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Swarm) handle(i int) (err error) {
	switch {
	case i < 0:
		var count [8]byte
		_, _ = unix.Read(s.eventfd, count[:]) // resets the eventfd
		return nil
	case s.conns[i].state == dialing:
		err = s.connected(i)
	default:
		err = s.read(i)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.describe(i), err)
	}
	return nil
}

// Wake makes Until check its condition. It may be called from any goroutine while the Swarm is
// open.
func (s *Swarm) Wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(s.eventfd, one[:]) // fails only if the counter is full; then the loop is awake
}

// Ready returns the number of subscribed connections.
func (s *Swarm) Ready() int { return s.ready }

// Received returns the number of received messages, and of read calls that returned messages.
func (s *Swarm) Received() (messages, reads int64) { return s.received, s.reads }

// Subscribers returns the number of subscribers of a channel.
func (s *Swarm) Subscribers(channel int) int {
	n, m := len(s.conns), len(s.opts.Channels)
	return n/m + min(1, max(0, n%m-channel))
}

// Verify compares the received numbers with pushed, those of all pushed messages by channel. The
// order in pushed does not matter. It returns the number of faults and descriptions of the first.
func (s *Swarm) Verify(pushed [][]int64) (wrong int, faults []string) {
	for ch, ids := range pushed {
		s.checker.compare(s.opts.Channels[ch], ch, ids)
	}
	for i := range s.conns {
		p := &s.conns[i].progress
		if want := len(pushed[p.channel]); int(p.seen) != want {
			s.checker.fault("%s: %d messages instead of %d", s.describe(i), p.seen, want)
		}
	}
	return s.checker.wrong, s.checker.faults
}

// Disconnect closes all sockets, as a broken network would.
func (s *Swarm) Disconnect() error {
	var errs []error
	for i := range s.conns {
		c := &s.conns[i]
		if c.fd >= 0 {
			errs = append(errs, unix.Close(int(c.fd)))
		}
		c.fd, c.state, c.partial = -1, unopened, c.partial[:0]
	}
	s.openCalled, s.opened, s.ready, s.dialing = false, 0, 0, 0
	return errors.Join(errs...)
}

// Reconnect opens all connections again after Disconnect. Each client resumes at its position.
func (s *Swarm) Reconnect(ctx context.Context, progress func()) error {
	s.reconnecting = true
	return s.Open(ctx, progress)
}

// Close closes the sockets.
func (s *Swarm) Close() error {
	var errs []error
	for i := range s.conns {
		if fd := s.conns[i].fd; fd >= 0 {
			errs = append(errs, unix.Close(int(fd)))
			s.conns[i].fd = -1
		}
	}
	return errors.Join(append(errs, unix.Close(s.eventfd), unix.Close(s.epoll))...)
}
