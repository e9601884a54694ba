package transport

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/await"
)

// startGated starts an HTTP server for three connections with a reserve of two. A request of /key
// counts as a call with an API key.
func startGated(t *testing.T) (addr string, gate *Gate) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/key", Authenticated)
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	server := http.Server{Handler: OneAtATime(mux), ConnContext: ConnContext, ConnState: ConnState}
	gate = NewGate(3)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(Listener{Listener: l, Gate: gate, Reserve: NewGate(2)}) })
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
		if n := gate.count.Load(); n != 0 || gate.provisional.Len() != 0 {
			t.Errorf("%d places are still taken, %d provisional", n, gate.provisional.Len())
		}
	})
	return l.Addr().String(), gate
}

// visitor is a client of that server.
type visitor struct {
	*testing.T
	net.Conn
	in *bufio.Reader
}

func visit(t *testing.T, addr string) visitor {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	return visitor{t, c, bufio.NewReader(c)}
}

func (v visitor) send(paths ...string) {
	v.Helper()
	text := ""
	for _, path := range paths {
		text += fmt.Sprintf("GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	}
	if _, err := io.WriteString(v, text); err != nil {
		v.Fatal(err)
	}
}

// staysOpen reads an answer and reports whether the connection stays open after it.
func (v visitor) staysOpen() bool {
	v.Helper()
	resp, err := http.ReadResponse(v.in, nil)
	if err != nil {
		v.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return !resp.Close
}

// ends checks that the server has closed the connection.
func (v visitor) ends() {
	v.Helper()
	if text, err := io.ReadAll(v.in); len(text) > 0 || err != nil && strings.Contains(err.Error(), "timeout") {
		v.Fatalf("the connection does not end: %q, %v", text, err)
	}
}

// TestOldestProvisionalIsEvicted checks that a full gate closes the oldest connection without a
// key, and none with a key.
func TestOldestProvisionalIsEvicted(t *testing.T) {
	addr, gate := startGated(t)
	evicted := make(chan struct{}, 100)
	gate.Evicted = func() { evicted <- struct{}{} }
	ask := func(path string) visitor {
		v := visit(t, addr)
		v.send(path)
		if !v.staysOpen() {
			t.Fatal("the server closes a connection although it has room")
		}
		return v
	}
	backend := ask("/key")
	idle, later := ask("/"), ask("/")
	for n := range 20 { // each takes the place of the oldest
		newcomer := ask("/")
		idle.ends()
		<-evicted
		idle, later = later, newcomer
		backend.send("/")
		if !backend.staysOpen() {
			t.Fatalf("the connection with a key ended after %d", n)
		}
	}
	second, third := ask("/key"), ask("/key") // all have a key now
	reserve := visit(t, addr)
	reserve.send("/")
	if reserve.staysOpen() {
		t.Error("a connection without a key keeps a place of the reserve")
	}
	fourth, fifth := ask("/key"), ask("/key")
	visit(t, addr).ends() // no place is left at all
	for _, v := range []visitor{backend, second, third, fourth, fifth} {
		v.send("/")
		if !v.staysOpen() {
			t.Error("a connection with a key ends")
		}
	}
}

// TestGateKeepsNewConnections checks that a full gate, in which all others have a key, does not
// close a connection whose first request has not arrived. Other connections get into the reserve.
func TestGateKeepsNewConnections(t *testing.T) {
	addr, gate := startGated(t)
	gate.Keep = 2
	for range 2 {
		v := visit(t, addr)
		v.send("/key")
		if !v.staysOpen() {
			t.Fatal("the server closes a connection with a key")
		}
	}
	backend := visit(t, addr)
	await.True(t, "the gate is full", func() bool { return gate.count.Load() == 3 })
	for range 20 {
		if gate.Enter() { // as the Poller does
			t.Fatal("a client took the place of the backend")
		}
		other := visit(t, addr)
		other.send("/")
		if other.staysOpen() {
			t.Fatal("a connection without a key is not in the reserve")
		}
	}
	backend.send("/key")
	if !backend.staysOpen() {
		t.Error("the connection of the backend ends")
	}
}

// TestGateKeepsSoMany checks that a connection is closed for the Keep-th one after it, and
// not before.
func TestGateKeepsSoMany(t *testing.T) {
	const keep = 4
	g := NewGate(keep + 3)
	g.Keep = keep
	enter := func() *gatedConn {
		if !g.Enter() {
			t.Fatal("no place")
		}
		conn, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		return &gatedConn{Conn: conn, place: newPlace(g, conn, false), listener: &Listener{}}
	}
	var settled []*gatedConn
	for range 4 {
		settled = append(settled, enter())
	}
	for range keep - 2 {
		enter()
	}
	backend := enter()
	for _, c := range settled {
		c.settle()
	}
	if g.Enter() {
		t.Fatalf("a connection was closed although fewer than %d are provisional", keep)
	}
	settled[0].leave()
	for n := range keep {
		if backend.left.Load() {
			t.Fatalf("the connection was closed for the one that came %d after it", n)
		}
		enter()
	}
	if !backend.left.Load() {
		t.Error("the oldest connection was not closed")
	}
}

// TestPipelined checks that a connection ends after a pipelined request, unless the first request
// had an API key.
func TestPipelined(t *testing.T) {
	addr, _ := startGated(t)
	probe := visit(t, addr)
	for range 50 { // a load balancer that keeps its connection
		probe.send("/")
		if !probe.staysOpen() {
			t.Fatal("the server closes a connection that waits for its answers")
		}
	}
	pipelined := visit(t, addr)
	pipelined.send("/", "/", "/", "/")
	if first, second := pipelined.staysOpen(), pipelined.staysOpen(); !first || second {
		t.Errorf("the connection is open after the first answer: %v, and after the second: %v", first, second)
	}
	pipelined.ends()
	backend := visit(t, addr)
	backend.send("/key", "/", "/", "/")
	for range 4 {
		if !backend.staysOpen() {
			t.Error("the server closes the connection of a backend")
		}
	}
}

// TestEvictedOnce checks that a place is given back once, even if the connection ends while it is
// evicted.
func TestEvictedOnce(t *testing.T) {
	for range 200 {
		g := NewGate(1)
		one, other := net.Pipe()
		if !g.Enter() {
			t.Fatal("no place")
		}
		c := &gatedConn{Conn: one, place: newPlace(g, one, false), listener: &Listener{}}
		var all sync.WaitGroup
		got := false
		all.Go(func() { got = g.Enter() })
		all.Go(c.settle)
		all.Go(func() { _ = c.Close() })
		all.Wait()
		want := int64(0)
		if got {
			want = 1
		}
		if n := g.count.Load(); n != want {
			t.Fatalf("%d places are taken, want %d", n, want)
		}
		_ = other.Close()
	}
}

// TestWriteTimeoutEndsAtHandOver checks that the write deadline of net/http does not apply to a
// connection that was handed over.
func TestWriteTimeoutEndsAtHandOver(t *testing.T) {
	p, s := handedWay.serve(t, setup{answer: time.Nanosecond}).connect()
	p.write(p.message("x"))
	s.want(event{"message", "x"})
	s.do(func() { s.conn.Write(batchOf(`{"answer":true}`)) })
	p.want(event{"message", `{"answer":true}`})
}
