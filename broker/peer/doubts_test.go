package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/registry"
)

// virtual is a server in a network of pipes, for tests with synctest.
type virtual struct {
	*Links
	t        *testing.T
	id       atomic.Value // string
	net      *virtualNet
	received atomic.Int64 // hints
	missed   atomic.Int64
	stop     func() // ends Run and waits
	urgent   bool   // what doubtsFor has returned was so, once at least
}

// virtualNet is the network. A host is the first id of its server.
type virtualNet struct {
	mu     sync.Mutex // guards the fields below
	listen map[string]pipeListener
	fail   map[string]error // by host: what a dial to it returns; context.DeadlineExceeded after a timeout
	killed map[string]bool  // hosts that make no connections
	conns  []virtualConn
}

type virtualConn struct {
	net.Conn
	from, to string // hosts
}

var errRefused = &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

func newVirtualNet() *virtualNet {
	return &virtualNet{listen: map[string]pipeListener{}, fail: map[string]error{}, killed: map[string]bool{}}
}

// dialer returns the dialer of a host.
func (n *virtualNet) dialer(from string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to, _, _ := net.SplitHostPort(address)
		n.mu.Lock()
		p, ok := n.listen[to]
		err, killed := n.fail[to], n.killed[from]
		n.mu.Unlock()
		switch {
		case killed || err == context.DeadlineExceeded:
			<-ctx.Done()
			return nil, ctx.Err()
		case err != nil:
			return nil, err
		case !ok:
			return nil, errRefused
		}
		conn, err := p.dial(ctx, network, address)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.conns = append(n.conns, virtualConn{conn, from, to})
		return conn, err
	}
}

// kill makes a host look like one whose process was killed: its connections end, it makes no more,
// and dials to it return err.
func (n *virtualNet) kill(host string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.killed[host], n.fail[host] = true, err
	for _, c := range n.conns {
		if c.from == host || c.to == host {
			_ = c.Close()
		}
	}
}

// start starts a server. wrap may change its handler; nil does not.
func (n *virtualNet) start(t *testing.T, id string, wrap func(http.Handler) http.Handler, change ...func(*Options)) *virtual {
	v := &virtual{t: t, net: n}
	v.id.Store(id)
	opts := Options{
		Self:    func() string { return v.id.Load().(string) },
		Handle:  func(Hint) { v.received.Add(1) },
		Metrics: Metrics{Missed: func(n int) { v.missed.Add(int64(n)) }},
	}
	for _, f := range change {
		f(&opts)
	}
	v.Links = New(opts)
	v.client.Transport.(*http.Transport).DialContext = n.dialer(id)
	handler := v.Handler()
	if wrap != nil {
		handler = wrap(handler)
	}
	p := servePipe(t, handler.ServeHTTP)
	n.mu.Lock()
	n.listen[id] = p
	n.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = v.Run(ctx) }()
	v.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(v.stop)
	return v
}

// list makes the others the live servers of v. Their host is their first id.
func (v *virtual) list(hosts ...string) {
	var live []registry.Server
	for _, h := range hosts {
		live = append(live, registry.Server{ID: h, Host: h + ":1"})
	}
	v.SetServers(live)
}

// doubtsFor calls Doubts twice a second. It returns what they returned, with the time since the
// call.
func (v *virtual) doubtsFor(d time.Duration) (all []string) {
	began := time.Now()
	for ; time.Since(began) < d; <-time.After(500 * time.Millisecond) {
		synctest.Wait()
		servers, urgent := v.Doubts()
		v.urgent = v.urgent || urgent
		for _, server := range servers {
			all = append(all, fmt.Sprintf("%s %v", server, time.Since(began)))
		}
	}
	return all
}

func (v *virtual) expectDoubts(what string, d time.Duration, want ...string) {
	v.t.Helper()
	if got := v.doubtsFor(d); !slices.Equal(got, want) {
		v.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (v *virtual) send(server string, n int) {
	for range n {
		v.Send(server, Hint{Kind: Channel, Name: "room"})
	}
}

// virtualPair returns two servers that know each other, without doubts.
func virtualPair(t *testing.T, wrap ...func(http.Handler) http.Handler) (a, b *virtual) {
	n := newVirtualNet()
	var wrapB func(http.Handler) http.Handler
	for _, w := range wrap {
		wrapB = w
	}
	a, b = n.start(t, "a", nil), n.start(t, "b", wrapB)
	a.list("b")
	b.list("a")
	synctest.Wait()
	return a, b
}

// TestStartIsNoLoss checks that the first links of new servers are no loss, nor is their silence
// until they know each other.
func TestStartIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := virtualPair(t)
		a.expectDoubts("a starts", 20*time.Second)
		b.expectDoubts("b started", 20*time.Second)
		a.send("b", 3)
		synctest.Wait()
		c := a.net.start(t, "c", nil)
		c.list("a", "b")
		<-time.After(500 * time.Millisecond)
		a.list("b", "c")
		b.list("a", "c")
		a.expectDoubts("another server starts", 3*time.Second)
		b.expectDoubts("another server started", 3*time.Second)
		if c.expectDoubts("it started", 3*time.Second); b.received.Load() != 3 {
			t.Errorf("%d hints, want 3", b.received.Load())
		}
	})
}

// TestHintsBeforeTheLink checks that hints count from the start of the process, also those to a
// server that is not on the list yet.
func TestHintsBeforeTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newVirtualNet()
		a, b := n.start(t, "a", nil), n.start(t, "b", nil)
		a.send("b", 1)
		if a.missed.Load() != 1 {
			t.Errorf("%d hints are missed, want 1", a.missed.Load())
		}
		b.list("a")
		a.list("b")
		synctest.Wait()
		if d, urgent := b.Doubts(); !slices.Equal(d, []string{"a"}) || !urgent {
			t.Errorf("a hint was dropped before the link, and %v is doubted", d)
		}
		a.list() // its lease ends, and comes back
		synctest.Wait()
		b.expectDoubts("a has ended the link", time.Second, "a 0s")
		a.send("b", 2)
		a.list("b")
		synctest.Wait()
		if d, urgent := b.Doubts(); !slices.Equal(d, []string{"a"}) || !urgent {
			t.Errorf("two hints were dropped while the server was not listed, and %v is doubted", d)
		}
		a.expectDoubts("nothing was sent to a", 20*time.Second)
	})
}

// TestKilledServer checks when a server is doubted whose process has been killed: its links end,
// and its port refuses.
func TestKilledServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := virtualPair(t)
		b.send("a", 2)
		<-time.After(heartbeat * 2)
		b.net.kill("b", errRefused)
		synctest.Wait()
		if d, urgent := a.Doubts(); !slices.Equal(d, []string{"b"}) || urgent {
			t.Errorf("at the end of the link %v is doubted", d)
		}
		<-time.After(500 * time.Millisecond)
		a.expectDoubts("its port refuses", 9*time.Second, "b 500ms", "b 2.5s", "b 6.5s")
		if a.urgent {
			t.Error("a process that does not run is urgent")
		}
		a.list()
		a.expectDoubts("its lease has ended", 10*time.Second)
		if !a.Unlisted("b") {
			t.Error("it is no longer listed, without a doubt")
		}
		a.expectDoubts("it is forgotten", 2*time.Minute)
	})
}

// TestOtherProcessAtAddress checks that an address with another server counts as a port that
// refuses.
func TestOtherProcessAtAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newVirtualNet()
		a, c := n.start(t, "a", nil), n.start(t, "c", nil)
		a.SetServers([]registry.Server{{ID: "b", Host: "c:1"}})
		a.expectDoubts("there is c instead of b", 9*time.Second, "b 1.5s", "b 2.5s", "b 4.5s", "b 8.5s")
		c.list()
	})
}

// TestRefusingServerRenewsLease checks that a server that refuses connections, but renews its
// lease, is doubted each second: it runs, and may store messages.
func TestRefusingServerRenewsLease(t *testing.T) {
	const long = 12 * time.Second
	for name, renews := range map[string]bool{"it renews": true, "it is dead": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, reads := time.Now(), atomic.Int64{}
				a := newVirtualNet().start(t, "a", nil, func(o *Options) {
					o.LastActive = func(_ context.Context, server string) (time.Time, error) {
						switch reads.Add(1); {
						case server != "b":
							return time.Time{}, errors.New("another server")
						case renews:
							return time.Now().Truncate(2 * time.Second), nil
						}
						return began, nil
					}
				})
				a.list("b")
				// The delays between dials have a jitter, and the lease is read after a dial.
				doubts, last := a.doubtsFor(long), time.Duration(0)
				for _, d := range doubts {
					at, err := time.ParseDuration(strings.TrimPrefix(d, "b "))
					if err != nil || renews && at-last > 2*time.Second {
						t.Errorf("its port refuses: %v: more than 2 s between two, %v", doubts, err)
					}
					last = at
				}
				if renews && last < long-2*time.Second || !renews && !slices.Equal(doubts, []string{"b 1.5s", "b 2.5s", "b 4.5s", "b 8.5s"}) {
					t.Errorf("its port refuses: %v", doubts)
				}
				if a.urgent != renews {
					t.Errorf("urgent: %t", a.urgent)
				}
				if n := reads.Load(); n == 0 || n > int64(long/time.Second) {
					t.Errorf("its lease was read %d times in %v", n, long)
				}
			})
		})
	}
}

// TestUnreachableServer checks that a server is doubted each second if it does not answer at all.
func TestUnreachableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := virtualPair(t)
		b.net.kill("b", context.DeadlineExceeded)
		a.expectDoubts("it does not answer", 5*time.Second, "b 0s", "b 1s", "b 2s", "b 3s", "b 4s")
		if !a.urgent {
			t.Error("it may store messages, and is not urgent")
		}
	})
}

// TestOlderServer checks a link from and to a server of a version without features. If it is the
// sender, the first batch and the end are doubted. If it is the receiver, it can read all batches.
func TestOlderServer(t *testing.T) {
	for _, older := range []string{"a", "b"} {
		t.Run("older is "+older, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { olderServer(t, older) })
		})
	}
}

func olderServer(t *testing.T, older string) {
	a, b := virtualPair(t, func(h http.Handler) http.Handler { return withoutFeatures(h, older) })
	first := []string{"a 0s"}
	if older == "b" { // all that shows here is which batches a sends: none has an ending
		first = nil
	}
	b.expectDoubts("the first batch", 3*time.Second, first...)
	a.send("b", 3)
	if b.expectDoubts("hints", 3*time.Second); b.received.Load() != 3 {
		t.Errorf("%d hints, want 3", b.received.Load())
	}
	a.send("b", 1)
	a.Goodbye(t.Context())
	synctest.Wait()
	if b.received.Load() != 4 {
		t.Errorf("%d hints, want 4: the queue is flushed, also to an older server", b.received.Load())
	}
	if d, _ := b.Doubts(); !slices.Equal(d, []string{"a"}) {
		t.Errorf("at the end of the link %v is doubted", d)
	}
}

// withoutFeatures makes one of the ends of the links to b look like a version without features: the
// dialer a, or the listener b.
func withoutFeatures(h http.Handler, older string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if older == "a" {
			r.Header.Del(headerFeatures)
		}
		h.ServeHTTP(withoutFeaturesHeader{w}, r)
	})
}

// withoutFeaturesHeader removes the header of the features from an answer.
type withoutFeaturesHeader struct{ http.ResponseWriter }

func (w withoutFeaturesHeader) WriteHeader(status int) {
	w.Header().Del(headerFeatures)
	w.ResponseWriter.WriteHeader(status)
}

func (w withoutFeaturesHeader) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestNewIDKeepsQueue checks that a server that takes a new id loses no hint, and that its numbers
// go on.
func TestNewIDKeepsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := virtualPair(t)
		a.send("b", 3)
		synctest.Wait()
		a.id.Store("a2")
		a.send("b", 3)
		b.expectDoubts("the link under the former id ended", time.Second)
		b.SetServers([]registry.Server{{ID: "a2", Host: "a:1"}})
		b.expectDoubts("under the new id", 20*time.Second)
		if b.received.Load() != 6 || a.missed.Load() != 0 {
			t.Errorf("%d hints, want 6; %d missed", b.received.Load(), a.missed.Load())
		}
		if !b.Unlisted("a") {
			t.Error("the former id was declared dead, without a doubt")
		}
		a.send("b", 1)
		b.expectDoubts("after the former id is forgotten", 20*time.Second)
	})
}
