package peer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/auth"
	"switchboard/registry"
)

// Options configures Links. Self and Handle are required.
type Options struct {
	// Self is this server's id. When it changes, the links are dialled again.
	Self func() string
	// Secret is the secret of the instances, which the two ends of a link prove to each other. Zero
	// means that every server is accepted.
	Secret auth.PeerSecret
	// Refused is called for each refused server, with one of the Refused constants and the server's
	// address. Nil means no call.
	Refused func(reason, address string)
	// TLS returns the configuration for dialling a link. Nil means no TLS.
	TLS func() *tls.Config
	// Dial connects to host:port. It is not used with TLS. Nil means a TCP connection.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Handle is called for every received hint, in order for each link. It must not block for long,
	// and must ignore unknown kinds.
	Handle func(Hint)
	// LastActive returns when a server has last renewed its lease, on the store's clock. It is called
	// once a second for a live server whose address refuses connections: if it renews its lease, it
	// runs. Nil means that all such servers have ended.
	LastActive func(ctx context.Context, server string) (time.Time, error)
	// Fault is for fault injection. Zero means none.
	Fault Fault
	// Logger logs the begin and end of links. Zero means no logs.
	Logger zerolog.Logger
	// Metrics count hints.
	Metrics Metrics
}

// Fault is a fault to inject. Tests and the fault ledger show that clients still receive all
// messages.
type Fault string

// The faults.
const (
	Drop   Fault = "drop"   // hints count as sent and are dropped
	Mangle Fault = "mangle" // each received batch is handled twice, in reverse order
)

// Metrics are functions that count hints. Each may be nil. They are called concurrently, also with
// 0, and must not block.
type Metrics struct {
	Sent     func(n int) // written to a link
	Missed   func(n int) // dropped before they were written
	Received func(n int) // read from a link
}

// Links are this server's links to and from all others.
type Links struct {
	opts       Options
	calls      map[string]func(context.Context, json.RawMessage) (any, error)
	client     *http.Client
	in         *inbound
	handshakes handshakes
	changed    chan struct{} // one slot: out was replaced
	leaving    chan struct{} // closed by Goodbye
	leave      func()        // closes leaving
	outboxes   outboxes

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
	leaving := make(chan struct{})
	dialer := net.Dialer{Timeout: dialTimeout}
	if opts.Dial == nil {
		opts.Dial = dialer.DialContext
	}
	transport := &http.Transport{ // no proxy: instances connect directly
		DialContext: opts.Dial,
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
			return http.ErrUseLastResponse // do not follow redirects: the address must be the registry's
		}},
		in:       newInbound(opts.Self),
		changed:  make(chan struct{}, 1),
		leaving:  leaving,
		leave:    sync.OnceFunc(func() { close(leaving) }),
		outboxes: outboxes{byServer: make(map[string]*outbox)},
	}
}

// Run keeps a link to every live server. When ctx ends, Run closes all links in both directions,
// refuses new ones and returns nil. Call Goodbye before, if nothing sends hints any more.
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
				links.Go(func() { k.run(ctx) })
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
	l.CloseInbound()
	l.client.CloseIdleConnections()
	return nil
}

// SetServers sets the live servers, as the registry lists them. It ignores this server. Links to
// servers that are no longer live are closed. The counts of hints in both directions stay, for a
// server that comes back, and until Unlisted.
func (l *Links) SetServers(live []registry.Server) {
	self := l.opts.Self()
	out, others := make(map[string]*link, len(live)), make(map[string]bool, len(live))
	for _, s := range live {
		if s.ID != self && s.ID != "" {
			others[s.ID] = true
		}
	}
	l.in.setLive(others)
	l.mu.Lock()
	for _, s := range live {
		if !others[s.ID] {
			continue
		}
		k := l.out[s.ID]
		if k == nil || k.host != s.Host {
			k = newLink(l, s.ID, s.Host)
		}
		out[s.ID] = k
	}
	for id := range l.out {
		if out[id] == nil {
			l.outboxes.unlist(id)
		}
	}
	l.out = out
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Send queues a hint for a server. It never blocks. A hint that cannot be queued is dropped and
// counted as missed. If there is no link, or the server is not on the list yet, the next link tells
// the server that it missed the hint.
func (l *Links) Send(server string, h Hint) {
	box := l.outbox(server)
	switch {
	case box == nil || !box.add(h, l.opts.Fault == Drop):
		l.opts.Metrics.Missed(1)
	case l.opts.Fault == Drop:
		l.opts.Metrics.Sent(1)
	}
}

// Miss counts a hint for a server that is not sent, so that the server looks in the store for what
// this one has stored. It is for hints whose names or receivers are not known.
func (l *Links) Miss(server string) {
	if box := l.outbox(server); box != nil {
		box.miss()
		l.opts.Metrics.Missed(1)
	}
}

// outbox returns the outbox of a server, nil without an id.
func (l *Links) outbox(server string) *outbox {
	if k := l.link(server); k != nil {
		return k.outbox
	}
	if server == "" {
		return nil
	}
	return l.outboxes.get(server)
}

// Doubts returns the servers whose hints to this server may have been lost since the last call,
// sorted. The broker must look in the store for what these servers have stored. A live server that
// is silent is returned once a second, and one whose process does not run after 1, 2, 4, 4, … s.
// A doubt is reported once: a caller that could not act must keep it. Call Doubts every half
// second. urgent means that one of the servers may be storing messages without hints for a second
// already.
func (l *Links) Doubts() (servers []string, urgent bool) { return l.in.takeDoubts() }

// Unlisted forgets a server that the registry no longer lists, and ends its link. It reports the
// last doubt: until now the server may have stored messages, also without a lease. doubted is false
// if the server has said goodbye and no hint is missing.
func (l *Links) Unlisted(server string) (doubted bool) { return l.in.unlisted(server) }

// scheme returns the URL scheme of the links.
func (l *Links) scheme() string {
	if l.opts.TLS != nil {
		return "wss"
	}
	return "ws"
}

func (l *Links) link(server string) *link {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.out[server]
}

// links returns the current map, which is replaced and never changed.
func (l *Links) links() map[string]*link {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.out
}
