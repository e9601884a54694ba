package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"switchboard/broker/dialect/native"
	"switchboard/internal/wire"
)

// TestMain ignores the goroutines of gnet's worker pool, which lasts as long as the process. The
// tests with a real broker use it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*goWorker).run.func1"))
}

// peer is the fake broker's end of one connection.
type peer struct {
	t     *testing.T
	in    chan wire.Request // messages from the client; closed with the connection
	send  func(raw string)
	close func(reason wire.CloseReason)
	drop  func() // breaks the connection
	ping  func() // sends the heartbeat of the transport
}

// transport is a transport of the fake broker.
type transport struct {
	name, url string
	serve     func(t *testing.T, ln net.Listener, peers chan<- *peer) (stop func())
}

var transports = []transport{
	{name: "tcp", url: "tcp://127.0.0.1:7070", serve: serveLines},
	{name: "websocket", url: "ws://127.0.0.1:8080/ws", serve: serveWebSockets},
}

func serveLines(t *testing.T, ln net.Listener, peers chan<- *peer) func() {
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			p := &peer{t: t, in: make(chan wire.Request, 4096), drop: func() { nc.Close() }}
			p.send = func(raw string) { fmt.Fprintln(nc, raw) }
			p.ping = func() { p.send(`{"type":"ping"}`) }
			p.close = func(reason wire.CloseReason) {
				p.send(fmt.Sprintf(`{"type":"closing","code":%q,"reconnect":%t}`, reason, reason.Reconnect()))
				nc.Close()
			}
			lines := bufio.NewScanner(nc)
			lines.Buffer(nil, 1<<20)
			go p.read(func() ([]byte, bool) { ok := lines.Scan(); return lines.Bytes(), ok })
			peers <- p
		}
	}()
	return func() { ln.Close() }
}

func serveWebSockets(t *testing.T, ln net.Listener, peers chan<- *peer) func() {
	ctx := context.Background()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		p := &peer{t: t, in: make(chan wire.Request, 4096), drop: func() { ws.CloseNow() }}
		p.send = func(raw string) { ws.Write(ctx, websocket.MessageText, []byte(raw)) }
		p.close = func(reason wire.CloseReason) { ws.Close(websocket.StatusCode(reason.Status()), "") }
		p.ping = func() { ws.Ping(ctx) }
		go p.read(func() ([]byte, bool) { _, raw, err := ws.Read(ctx); return raw, err == nil })
		peers <- p
	})}
	go server.Serve(ln)
	return func() { server.Close() }
}

func (p *peer) read(next func() ([]byte, bool)) {
	defer close(p.in)
	defer p.drop()
	for {
		raw, ok := next()
		if !ok {
			return
		}
		req, err := native.DecodeRequest(raw)
		if err != nil {
			p.t.Errorf("the client sent %s: %v", raw, err)
			return
		}
		p.in <- req
	}
}

// expect returns the next message from the client. It fails the test for another type.
func (p *peer) expect(typ string) wire.Request {
	p.t.Helper()
	req, ok := <-p.in
	if !ok || req.Type != typ {
		p.t.Fatalf("the client sent %+v, want %s", req, typ)
	}
	return req
}

// answer sends a message with the ref of req.
func (p *peer) answer(req wire.Request, format string, args ...any) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(fmt.Appendf(nil, format, args...), &fields); err != nil {
		p.t.Fatal(err)
	}
	fields["ref"] = fmt.Append(nil, req.Ref.Value)
	raw, _ := json.Marshal(fields)
	p.send(string(raw))
}

func (p *peer) sendf(format string, args ...any) { p.send(fmt.Sprintf(format, args...)) }

// expectNothing fails the test if the client has sent a message.
func (p *peer) expectNothing() {
	p.t.Helper()
	synctest.Wait()
	if len(p.in) > 0 {
		p.t.Fatalf("unexpected: %+v", <-p.in)
	}
}

// pipeListener accepts connections made with net.Pipe.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case nc := <-l.conns:
		return nc, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// scenario is a client under test, connected to the fake broker.
type scenario struct {
	*testing.T
	client  *Client
	peers   chan *peer
	end     context.CancelFunc
	result  chan error    // of Run
	release chan struct{} // see blockCallbacks

	mu      sync.Mutex // guards the fields below
	dialled []string
	down    bool     // dialling fails
	events  []string // the recorded callbacks
}

func (s *scenario) dial(ctx context.Context, ln *pipeListener, address string) (net.Conn, error) {
	s.mu.Lock()
	s.dialled = append(s.dialled, address)
	down := s.down
	s.mu.Unlock()
	if down {
		return nil, fmt.Errorf("no listener at %s", address)
	}
	ours, theirs := net.Pipe()
	select {
	case ln.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *scenario) record(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

// takeCallbacks returns the callbacks that were recorded since the last call.
func (s *scenario) takeCallbacks() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	s.events = nil
	return fmt.Sprint(events)
}

func (s *scenario) wantCallbacks(want string) {
	s.Helper()
	if got := s.takeCallbacks(); got != want {
		s.Fatalf("callbacks got %s, want %s", got, want)
	}
}

// accept answers the connect of the next connection. It returns the connection and the connect.
func (s *scenario) accept() (*peer, wire.Request) {
	s.Helper()
	p := <-s.peers
	req := p.expect(wire.TypeConnect)
	p.answer(req, `{"type":"connected","client":"phone","user":"alice","server":"b1","ping":25}`)
	return p, req
}

// subscribe subscribes to news, at position id.
func (s *scenario) subscribe(p *peer, id int64) {
	s.Helper()
	done := make(chan error)
	go func() {
		_, err := s.client.Subscribe(s.Context(), "news", SubscribeOptions{})
		done <- err
	}()
	p.answer(p.expect(wire.TypeSubscribe), `{"type":"subscribed","channel":"news","id":%d}`, id)
	if err := <-done; err != nil {
		s.Fatal(err)
	}
}

// forEachTransport runs test over each transport, in a synctest bubble.
func forEachTransport(t *testing.T, change func(*scenario, *Options), test func(*scenario)) {
	t.Helper()
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runScenario(t, tr, change, test) })
		})
	}
}

func runScenario(t *testing.T, tr transport, change func(*scenario, *Options), test func(*scenario)) {
	s := &scenario{T: t, peers: make(chan *peer, 16), result: make(chan error, 1), release: make(chan struct{})}
	opts := Options{
		URLs:      []string{tr.url},
		OnMessage: func(m Message) { s.record("%s:%d", m.Channel, m.ID) },
		OnGap:     func(g Gap) { s.record("gap %s:%d-%d", g.Channel, g.After, g.ID) },
	}
	if change != nil {
		change(s, &opts)
	}
	var err error
	if s.client, err = New(opts); err != nil {
		t.Fatal(err)
	}
	ln := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.client.netDial = func(ctx context.Context, _, address string) (net.Conn, error) {
		return s.dial(ctx, ln, address)
	}
	stop := tr.serve(t, ln, s.peers)
	defer stop()
	var ctx context.Context
	ctx, s.end = context.WithCancel(t.Context())
	defer s.end()
	go func() { s.result <- s.client.Run(ctx) }()
	test(s)
	s.end()
}
