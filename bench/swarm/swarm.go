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
	bufferSize = 256 << 10
	maxEvents  = 512
	pollTime   = 50 * time.Millisecond // how often conditions are looked at while nothing comes
)

// Options configures a Swarm. Addr, Dialect, Connections and Channels are required.
type Options struct {
	Addr        string   // host:port
	Addrs       []string // instead of Addr: subscriber i connects to Addrs[i % len(Addrs)]
	Dialect     Dialect
	Connections int      // subscriber i follows Channels[i % len(Channels)]
	Channels    []string // names
	Client      string   // client ids are this and a number

	// Payload is what every message carries, compact JSON; the ledger then holds the server's
	// positions. Zero means numbered payloads (AppendPayload), and a ledger of those numbers.
	Payload []byte
	// Writers is how many publishers write to one channel at the same time: publisher w the numbers that leave
	// the rest w. Its own messages must come in order. Zero means 1.
	Writers int64
	// Latency takes the time since a message was to be sent, ns. Zero means that nobody asks.
	Latency func(ns int64)
	Dialing int           // connections on the way at once. Zero means 128
	Stall   time.Duration // without anything new for so long, waiting fails. Zero means 10 s
}

// Swarm is many subscribers. It belongs to one goroutine, but for Wake.
type Swarm struct {
	opts    Options
	epoll   int
	eventfd int
	targets []target

	conns  []conn
	opened int  // conns that have a socket
	open   bool // Open was called
	ledger ledger

	dialect  Dialect
	reopened bool // all were connected before
	buf      []byte
	events   []unix.EpollEvent

	dialing  int // between socket and ready
	ready    int
	pongs    int
	turns    int64 // events handled
	received int64 // messages
	reads    int64 // read calls that brought messages
}

// New prepares a Swarm; nothing is connected until Open.
func New(opts Options) (*Swarm, error) {
	opts.Dialing = cmp.Or(opts.Dialing, 128)
	opts.Stall = cmp.Or(opts.Stall, 10*time.Second)
	s := &Swarm{
		opts: opts, dialect: opts.Dialect, conns: make([]conn, opts.Connections),
		ledger: ledger{ids: make([][]int64, len(opts.Channels)), writers: max(1, opts.Writers)},
		buf:    make([]byte, bufferSize+maxMessage), events: make([]unix.EpollEvent, maxEvents),
	}
	for i := range s.conns {
		s.conns[i] = conn{fd: -1, place: place{channel: int32(i % len(opts.Channels))}}
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

// Open connects and subscribes everybody, a limited number at a time: a full backlog
// would drop the handshake, and its repetition is what would then be measured.
func (s *Swarm) Open(ctx context.Context, progress func()) error {
	s.open = true
	return s.Until(ctx, "open the connections", func() bool {
		progress()
		return s.ready == len(s.conns)
	})
}

// Until turns the loop until done, which is asked after each turn. It fails when a
// connection does, or when nothing comes for as long as Options.Stall says.
func (s *Swarm) Until(ctx context.Context, what string, done func() bool) error {
	turns, since := s.turns, time.Now()
	for !done() {
		if err := s.turn(ctx, pollTime); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if s.turns != turns {
			turns, since = s.turns, time.Now()
		} else if time.Since(since) > s.opts.Stall {
			return fmt.Errorf("%s: nothing came for %v; %d of %d connections are subscribed, %d messages were received",
				what, s.opts.Stall, s.ready, len(s.conns), s.received)
		}
	}
	return nil
}

// Idle turns the loop for d: pings are answered.
func (s *Swarm) Idle(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	for left := d; left > 0; left = time.Until(end) {
		if err := s.turn(ctx, left); err != nil {
			return err
		}
	}
	return nil
}

// turn handles what is ready, waiting for at most d.
func (s *Swarm) turn(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for s.open && s.opened < len(s.conns) && s.dialing < s.opts.Dialing {
		if err := s.dial(s.opened); err != nil {
			return fmt.Errorf("%s: %w", s.who(s.opened), err)
		}
		s.opened++
	}
	n, err := unix.EpollWait(s.epoll, s.events, int(d/time.Millisecond)+1)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("epoll_wait: %w", err)
	}
	for _, e := range s.events[:max(n, 0)] {
		s.turns++
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
		_, _ = unix.Read(s.eventfd, count[:]) // only to make it unreadable again
		return nil
	case s.conns[i].state == dialing:
		err = s.dialled(i)
	default:
		err = s.read(i)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.who(i), err)
	}
	return nil
}

// Wake makes a waiting Until look at its condition. It may be called from anywhere,
// while the Swarm is open.
func (s *Swarm) Wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(s.eventfd, one[:]) // it fails only when the counter is full: awake already
}

// Ready is how many connections are subscribed.
func (s *Swarm) Ready() int { return s.ready }

// Received is how many messages came, and in how many read calls.
func (s *Swarm) Received() (messages, reads int64) { return s.received, s.reads }

// Subscribers is how many connections follow channel.
func (s *Swarm) Subscribers(channel int) int {
	n, m := len(s.conns), len(s.opts.Channels)
	return n/m + min(1, max(0, n%m-channel))
}

// Fence asks every connection for an answer: whatever the server had written before has
// then been read.
func (s *Swarm) Fence(ctx context.Context) error {
	want := s.pongs
	for i := range s.conns {
		if err := s.write(&s.conns[i], s.dialect.Ping()); err != nil {
			return fmt.Errorf("%s: %w", s.who(i), err)
		}
		want++
	}
	return s.Until(ctx, "wait for an answer on every connection", func() bool { return s.pongs >= want })
}

// Verify compares what was received with the ids that were pushed, by channel and in any
// order. It returns how many faults there are, and the first of them in words.
func (s *Swarm) Verify(pushed [][]int64) (wrong int, faults []string) {
	for ch, ids := range pushed {
		s.ledger.settle(s.opts.Channels[ch], ch, ids)
	}
	for i := range s.conns {
		p := &s.conns[i].place
		if want := len(pushed[p.channel]); int(p.seen) != want {
			s.ledger.fault("%s: %d messages instead of %d", s.who(i), p.seen, want)
		}
	}
	return s.ledger.wrong, s.ledger.faults
}

// Cut closes all sockets, as a network that breaks does.
func (s *Swarm) Cut() error {
	var errs []error
	for i := range s.conns {
		c := &s.conns[i]
		if c.fd >= 0 {
			errs = append(errs, unix.Close(int(c.fd)))
		}
		c.fd, c.state, c.step, c.rest = -1, unopened, 0, c.rest[:0]
	}
	s.open, s.opened, s.ready, s.dialing = false, 0, 0, 0
	return errors.Join(errs...)
}

// Reopen is Open after Cut: everybody resumes at his position.
func (s *Swarm) Reopen(ctx context.Context, progress func()) error {
	s.reopened = true
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
