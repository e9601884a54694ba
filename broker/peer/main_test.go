package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"switchboard/broker/auth"
	"switchboard/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is one server on the loopback address: its Links, and a listener whose connections can be
// cut.
type node struct {
	*Links
	t    *testing.T
	id   atomic.Value // string
	host string
	http *httptest.Server
	cuts *cutListener

	hints   chan Hint
	batches chan struct{} // one slot: a batch arrived
	logs    chan logLine
	refused chan string // reasons of Options.Refused
	sent    atomic.Int64
	missed  atomic.Int64
	stop    func() // ends Run and waits
}

type logLine struct{ Level, Message, Peer, From, Error string }

// Write receives the log lines of zerolog. Tests wait for them.
func (n *node) Write(p []byte) (int, error) {
	var line logLine
	err := json.NewDecoder(bytes.NewReader(p)).Decode(&line)
	n.logs <- line
	return len(p), err
}

func newNode(t *testing.T, id string, change ...func(*Options)) *node {
	n := &node{t: t, hints: make(chan Hint, 1<<16), batches: make(chan struct{}, 1), logs: make(chan logLine, 1<<12), refused: make(chan string, 1<<10)}
	n.id.Store(id)
	opts := Options{
		Self:   func() string { return n.id.Load().(string) },
		Handle: func(h Hint) { n.hints <- h },
		Logger: zerolog.New(n),
		Refused: func(reason, address string) {
			if address == "" {
				t.Error("a refusal without an address")
			}
			n.refused <- reason
		},
		Metrics: Metrics{
			Sent:   func(d int) { n.sent.Add(int64(d)) },
			Missed: func(d int) { n.missed.Add(int64(d)) },
			Received: func(int) {
				select {
				case n.batches <- struct{}{}:
				default:
				}
			},
		},
	}
	for _, f := range change {
		f(&opts)
	}
	n.Links = New(opts)
	n.http = httptest.NewUnstartedServer(n.Handler())
	n.cuts = &cutListener{Listener: n.http.Listener}
	n.http.Listener = n.cuts
	n.host = n.cuts.Addr().String()
	return n
}

// start serves the node until the test ends.
func (n *node) start() *node {
	n.http.Start()
	stopped := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { stopped <- n.Run(ctx) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-stopped; err != nil {
			n.t.Errorf("Run: %v", err)
		}
	})
	n.t.Cleanup(func() {
		n.stop()
		n.http.Close()
	})
	return n
}

// setServers makes n and the others the live servers of n.
func (n *node) setServers(others ...*node) {
	live := []registry.Server{{ID: n.opts.Self(), Host: n.host}}
	for _, o := range others {
		live = append(live, registry.Server{ID: o.opts.Self(), Host: o.host})
	}
	n.SetServers(live)
}

// awaitLog returns the next log line with the message.
func (n *node) awaitLog(message string) logLine {
	for line := range n.logs {
		if line.Message == message {
			return line
		}
	}
	panic("the log is never closed")
}

// awaitLoss waits for a batch, maybe a heartbeat, after which n reports a loss.
func (n *node) awaitLoss() {
	for range n.batches {
		if servers, _ := n.Doubts(); len(servers) > 0 {
			return
		}
	}
}

// awaitLink waits until from has a link to n, and returns the servers in doubt since the last
// call.
func (n *node) awaitLink(from *node) []string {
	n.t.Helper()
	from.awaitLog("peer link is up")
	from.Send(n.opts.Self(), Hint{Kind: Client, Name: "awaitLink"})
	if h := <-n.hints; h.Name != "awaitLink" {
		n.t.Fatalf("got %v before the first hint", h)
	}
	servers, _ := n.Doubts()
	return servers
}

// cutListener is a listener that can close its connections.
type cutListener struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (l *cutListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.conns = append(l.conns, c)
	}
	return c, err
}

func (l *cutListener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// withSecret sets a node's secret, padded to a valid length.
func withSecret(text string) func(*Options) {
	return func(o *Options) {
		var err error
		if o.Secret, err = auth.NewPeerSecret(text + strings.Repeat("-", auth.PeerSecretBytes)); err != nil {
			panic(err)
		}
	}
}
