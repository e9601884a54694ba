package peer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"sync"

	"github.com/rs/zerolog"

	"switchboard/broker/auth"
	"switchboard/registry"
)

// Options configures Links. Self and Handle are required.
type Options struct {
	// Self is this server's id. When it changes, the links are dialled again.
	Self func() string
	// Secret is proven to other servers, and they must prove it. Zero means that every server is
	// let in.
	Secret auth.PeerSecret
	// Refused is called for each server that is not let in, with one of the Refused constants and
	// its address. Nil means that nothing is.
	Refused func(reason, address string)
	// TLS is the configuration of each link and call when it is dialled. Zero means in the clear.
	TLS func() *tls.Config
	// Handle is called for every hint received, in order for each sender's link. It must
	// not block for long, and ignores kinds it does not know.
	Handle func(Hint)
	// Fault is for fault injection. Zero means none.
	Fault Fault
	// Logger tells of links that come and go. Zero means silence.
	Logger zerolog.Logger
	// Metrics are told what becomes of hints.
	Metrics Metrics
}

// Fault is what Links do wrong on purpose: tests and the fault ledger show that it changes nothing.
type Fault string

// The faults.
const (
	Drop   Fault = "drop"   // hints count as sent and are never put on the wire
	Mangle Fault = "mangle" // each batch received is handled twice, back to front
)

// Metrics are functions that are told numbers of hints, zero included; each may be nil. They are called
// concurrently and must not block.
type Metrics struct {
	Sent     func(n int) // written to a link
	Missed   func(n int) // neither queued nor written
	Received func(n int)
}

// Links are this server's links to and from all others.
type Links struct {
	opts       Options
	calls      map[string]func(context.Context, json.RawMessage) (any, error)
	client     *http.Client
	in         *inbound
	handshakes handshakes
	changed    chan struct{} // one slot: out is another

	mu  sync.RWMutex // guards out
	out map[string]*link
}

// New returns Links that know no server yet.
func New(opts Options) *Links {
	if opts.Refused == nil {
		opts.Refused = func(string, string) {}
	}
	for _, f := range []*func(int){&opts.Metrics.Sent, &opts.Metrics.Missed, &opts.Metrics.Received} {
		if *f == nil {
			*f = func(int) {}
		}
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	transport := &http.Transport{ // no proxy: the others are neighbours
		DialContext: dialer.DialContext,
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&tls.Dialer{NetDialer: &dialer, Config: opts.TLS()}).DialContext(ctx, network, addr)
		},
		DisableKeepAlives:  true, // a link keeps its connection, and nothing else uses one
		DisableCompression: true,
	}
	return &Links{
		opts:  opts,
		calls: make(map[string]func(context.Context, json.RawMessage) (any, error)),
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a link goes where the registry says, and nowhere else
		}},
		in:      newInbound(),
		changed: make(chan struct{}, 1),
	}
}

// Run keeps a link to every live server. When ctx ends it closes these and the inbound
// ones, lets none begin again, and returns nil when all are gone.
func (l *Links) Run(ctx context.Context) error {
	var links sync.WaitGroup
	running := make(map[*link]context.CancelFunc)
	for ctx.Err() == nil {
		out := l.links()
		for k, stop := range running {
			if out[k.id] != k {
				stop()
				delete(running, k)
			}
		}
		for _, k := range out {
			if running[k] == nil {
				ctx, stop := context.WithCancel(ctx)
				running[k] = stop
				links.Go(func() { k.keep(ctx) })
			}
		}
		select {
		case <-ctx.Done():
		case <-l.changed:
		}
	}
	for _, stop := range running {
		stop()
	}
	links.Wait()
	l.handshakes.close()
	l.in.close()
	l.client.CloseIdleConnections()
	return nil
}

// SetServers tells which servers the registry says are live; this one is skipped. Links to
// others are closed, and what was known about them is forgotten.
func (l *Links) SetServers(live []registry.Server) {
	self := l.opts.Self()
	out, heard := make(map[string]*link, len(live)), make(map[string]bool, len(live))
	l.mu.Lock()
	for _, s := range live {
		if s.ID == self || s.ID == "" {
			continue
		}
		k := l.out[s.ID]
		if k == nil || k.host != s.Host {
			k = newLink(l, s.ID, s.Host)
		}
		out[s.ID], heard[s.ID] = k, true
	}
	l.out = out
	l.mu.Unlock()
	l.in.setLive(heard)
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Send gives a hint to a server's link. It never blocks; a hint that cannot be queued is
// a miss.
func (l *Links) Send(server string, h Hint) {
	k := l.link(server)
	switch {
	case k == nil || !k.add(h, l.opts.Fault == Drop):
		l.opts.Metrics.Missed(1)
	case l.opts.Fault == Drop:
		l.opts.Metrics.Sent(1)
	}
}

// Lost reports whether hints to this server may have been lost since the last call, so that
// everything must be looked at once. While some live server cannot be heard it is true once a
// second. Call it every half second.
func (l *Links) Lost() bool { return l.in.lost() }

// scheme is that of a URL, of http or ws.
func (l *Links) scheme(plain string) string {
	if l.opts.TLS != nil {
		return plain + "s"
	}
	return plain
}

func (l *Links) link(server string) *link {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.out[server]
}

// links is the map of now, which is never changed but replaced.
func (l *Links) links() map[string]*link {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.out
}
