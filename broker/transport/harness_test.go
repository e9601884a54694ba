package transport

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"switchboard/broker/loop"
	"switchboard/internal/dialecttest"
	"switchboard/internal/wire"
)

// testTimeout bounds every wait of a test.
const testTimeout = 20 * time.Second

// messageLimit is the most bytes of a message in these tests.
const messageLimit = 100 << 10

// TestMain looks for leaked goroutines. gnet starts a pool of goroutines when it is loaded, whose
// workers stay for a while when they are idle.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(dialecttest.EachDialect{M: m, Spoken: &spoken}, goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*goWorker).run.func1"))
}

// event is one call of a Receiver, or one unit or frame that a peer reads.
type event struct{ kind, text string }

// session is a Receiver that records its calls.
type session struct {
	t      *testing.T
	loop   *loop.Loop
	conn   Conn
	first  []wire.Request            // those of the handshake
	peer   string                    // the remote address
	react  func(s *session, e event) // called on the loop with every event
	events chan event

	control int  // frames that Control has counted
	refuse  bool // Control returns false
}

func (s *session) record(kind, text string) {
	e := event{kind, text}
	select {
	case s.events <- e:
	default:
		panic(fmt.Sprintf("the test does not read its events: %.60v", e))
	}
	if s.react != nil {
		s.react(s, e)
	}
}

func (s *session) Receive(req wire.Request, _ int)                { s.record("message", req.Type) }
func (s *session) TooLarge(ref wire.Ref)                          { s.record("too large", refText(ref)) }
func (s *session) Malformed(_ wire.Ref, _ int, err error, _ bool) { s.record("malformed", err.Error()) }

// refText returns a reference as text, "" if it is not set.
func refText(ref wire.Ref) string {
	if !ref.Set {
		return ""
	}
	return strconv.FormatInt(ref.Value, 10)
}

func (s *session) Broken(string)         { s.record("broken", "") }
func (s *session) Writable()             { s.record("writable", "") }
func (s *session) Closed()               { s.record("closed", "") }
func (s *session) Control(n, _ int) bool { s.control += n; return !s.refuse }

// do runs f on the session's loop.
func (s *session) do(f func()) {
	done := make(chan struct{})
	s.loop.Post(func() {
		f()
		close(done)
	})
	<-done
}

func (s *session) next() event {
	s.t.Helper()
	select {
	case e := <-s.events:
		return e
	case <-time.After(testTimeout):
		s.t.Fatal("the session receives nothing")
		panic("unreachable")
	}
}

func (s *session) want(events ...event) {
	s.t.Helper()
	for i, want := range events {
		if got := s.next(); got != want {
			s.t.Fatalf("event %d of the session: %.60v, want %.60v", i, got, want)
		}
	}
}

// wantSilence checks, after the service has stopped, that the session has received nothing else.
func (s *session) wantSilence() {
	s.t.Helper()
	select {
	case e := <-s.events:
		s.t.Fatalf("the session also receives %.60v", e)
	default:
	}
}

// setup is what a test changes about a service.
type setup struct {
	room      int // connections; 0 for many
	react     func(s *session, e event)
	open      func(s *session) // within Accept
	handshake time.Duration
	linger    time.Duration
	compress  bool
	answer    time.Duration // WriteTimeout of the http.Server; 0 for none
	read      time.Duration // ReadTimeout of the http.Server; 0 for none
	first     int           // Limits.First
	proxies   ProxyHeaders
}

// service is a listener with its sessions.
type service struct {
	way
	t        *testing.T
	addr     string
	sessions chan *session
	gate     *Gate
	stop     func() // ends it and waits; also at the end of the test
}

// way is a listener and a protocol by which a client connects.
type way struct {
	name   string
	framed bool // WebSocket
	stream bool // Server-Sent Events: the peer sends nothing
	start  func(s *service, limits Limits, accept Accept, o setup) (stop func())
}

var (
	lineWay     = way{"TCP lines on gnet", false, false, startPoller}
	pollWay     = way{"WebSocket on gnet", true, false, startPoller}
	webWay      = way{"WebSocket on net/http", true, false, startWeb}
	handedWay   = way{"WebSocket handed over by net/http", true, false, startHanded}
	inboundWays = []way{lineWay, pollWay, webWay, handedWay} // the peer sends, too
	socketWays  = []way{pollWay, webWay, handedWay}

	streamWay       = way{"stream on net/http", false, true, startWeb}
	handedStreamWay = way{"stream handed over by net/http", false, true, startHanded}
	http2Way        = way{"stream on HTTP/2", false, true, startHTTP2}
	streamWays      = []way{streamWay, handedStreamWay, http2Way}
	allWays         = slices.Concat(inboundWays, streamWays)
)

// over runs test as a subtest for each way.
func over(t *testing.T, ways []way, test func(t *testing.T, w way)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { test(t, w) })
	}
}

func (w way) serve(t *testing.T, o setup) *service {
	t.Helper()
	s := &service{way: w, t: t, sessions: make(chan *session, 1000), gate: NewGate(cmp.Or(o.room, 1000))}
	limits := Limits{
		Message: messageLimit, First: o.first, Gate: s.gate,
		Page: func(p Page) string {
			if p.Origin == "https://bad.example" || p.Host != "broker.example" {
				return "not this page"
			}
			return ""
		},
	}
	accept := func(l *loop.Loop, c Conn, first []wire.Request) Receiver {
		made := &session{loop: l, conn: c, first: first, peer: c.RemoteAddr(), react: o.react, events: make(chan event, 4096)}
		if want, _ := netip.ParseAddrPort(made.peer); c.RemoteAddrPort() != want {
			t.Errorf("the peer is %s, and RemoteAddrPort returns %v", made.peer, c.RemoteAddrPort())
		}
		if o.open != nil {
			o.open(made)
		}
		s.sessions <- made
		return made
	}
	s.stop = sync.OnceFunc(w.start(s, limits, accept, o))
	t.Cleanup(s.stop)
	return s
}

func startPoller(s *service, limits Limits, accept Accept, o setup) func() {
	p, stop := runPoller(s, limits, accept, o)
	s.addr = p.Addr().String()
	return stop
}

func runPoller(s *service, limits Limits, accept Accept, o setup) (*Poller, func()) {
	p := NewPoller(1, 0, limits, dialects(), accept, zerolog.New(zerolog.NewTestWriter(s.t)).Level(zerolog.WarnLevel))
	p.limits.Handshake = cmp.Or(o.handshake, testTimeout)
	p.lingerTime, p.ProxyHeaders = cmp.Or(o.linger, testTimeout), o.proxies
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, "127.0.0.1:0") }()
	<-p.Booted()
	return p, func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		for _, l := range p.loops {
			if len(l.deadlines) > 0 || len(l.backlog) > 0 {
				s.t.Error("the loop still refers to a connection that has ended")
			}
		}
	}
}

func startWeb(s *service, limits Limits, accept Accept, o setup) func() {
	return serveWeb(s, NewWeb(1, 0, limits, dialects(), accept), limits, o)
}

// startHanded starts a Web that hands all connections over to a Poller.
func startHanded(s *service, limits Limits, accept Accept, o setup) func() {
	p, stop := runPoller(s, limits, accept, o)
	w := NewWeb(1, 1, limits, dialects(), func(*loop.Loop, Conn, []wire.Request) Receiver { panic("a connection was not handed over") })
	w.Poller = p
	end := serveWeb(s, w, limits, o)
	return func() {
		stop()
		end()
	}
}

func serveWeb(s *service, w *Web, limits Limits, o setup) func() {
	w.Compress = o.compress
	w.lingerTime = cmp.Or(o.linger, testTimeout)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr = l.Addr().String()
	server := http.Server{Handler: webMux(w), ConnContext: ConnContext, ConnState: ConnState, ReadHeaderTimeout: o.handshake, ReadTimeout: o.read, WriteTimeout: o.answer}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	gated := Listener{
		Listener: l, Gate: limits.Gate, Reserve: NewGate(1), Refused: NewGate(1),
		ProxyHeaders: o.proxies, HeaderTimeout: testTimeout,
	}
	if len(o.proxies.Networks) > 0 {
		gated.Addresses = limits.Addresses
	}
	running.Go(func() { _ = server.Serve(gated) })
	running.Go(func() { _ = w.Run(ctx) })
	return func() {
		_ = server.Close()
		cancel()
		running.Wait()
	}
}

func webMux(w *Web) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /ws", w)
	mux.HandleFunc("GET /sse", w.ServeStream)
	return mux
}

// startHTTP2 starts a Web with TLS. Peers reach it through a proxy that turns their requests into
// streams of one HTTP/2 connection.
func startHTTP2(s *service, limits Limits, accept Accept, o setup) func() {
	w := NewWeb(1, 0, limits, dialects(), accept)
	w.lingerTime = cmp.Or(o.linger, testTimeout)
	server := httptest.NewUnstartedServer(webMux(w))
	server.Listener = Listener{Listener: server.Listener, Gate: limits.Gate, Reserve: NewGate(1)}
	server.EnableHTTP2 = true
	server.Config.ConnContext, server.Config.ConnState = ConnContext, ConnState
	server.Config.WriteTimeout, server.Config.ReadTimeout = o.answer, o.read
	server.StartTLS()
	target, err := url.Parse(server.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		},
		Transport: server.Client().Transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	})
	s.addr = proxy.Listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
		server.CloseClientConnections()
		server.Close()
		proxy.CloseClientConnections()
		proxy.Close()
	}
}

// in returns the same service for a subtest.
func (s service) in(t *testing.T) *service {
	s.t = t
	return &s
}

// connect returns a new peer and its session.
func (s *service) connect() (*peer, *session) {
	s.t.Helper()
	p := s.dial()
	p.handshake(wsPath)
	if s.stream {
		return p, p.beginStream(s)
	}
	if !s.framed { // the session comes with the first byte
		p.write(spoken.Empty)
	}
	return p, s.session()
}

func (s *service) session() *session {
	s.t.Helper()
	select {
	case made := <-s.sessions:
		made.t = s.t
		return made
	case <-time.After(testTimeout):
		s.t.Fatal("no session was made")
		panic("unreachable")
	}
}
