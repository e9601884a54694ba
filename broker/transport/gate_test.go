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
)

// keyed is an HTTP server with room for three connections and a reserve of two. /key stands for a
// call with an API key.
func keyed(t *testing.T) (addr string, gate *Gate) {
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

// visitor is a connection to such a server.
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
	_ = c.SetDeadline(time.Now().Add(patience))
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

// answered reads an answer, and says whether the connection goes on.
func (v visitor) answered() (goesOn bool) {
	v.Helper()
	resp, err := http.ReadResponse(v.in, nil)
	if err != nil {
		v.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return !resp.Close
}

func (v visitor) ends() {
	v.Helper()
	if text, err := io.ReadAll(v.in); len(text) > 0 || err != nil && strings.Contains(err.Error(), "timeout") {
		v.Fatalf("the connection does not end: %q, %v", text, err)
	}
}

// TestOldestProvisionalGivesWay: when all places are taken, the oldest connection without a key
// ends, and none with one.
func TestOldestProvisionalGivesWay(t *testing.T) {
	addr, gate := keyed(t)
	evicted := make(chan struct{}, 100)
	gate.Evicted = func() { evicted <- struct{}{} }
	ask := func(path string) visitor {
		v := visit(t, addr)
		v.send(path)
		if !v.answered() {
			t.Fatal("there was room, and the answer says that the connection ends")
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
		if !backend.answered() {
			t.Fatalf("the connection with a key ended after %d", n)
		}
	}
	second, third := ask("/key"), ask("/key") // all have a key now
	reserve := visit(t, addr)
	reserve.send("/")
	if reserve.answered() {
		t.Error("a place of the reserve is kept without a key")
	}
	fourth, fifth := ask("/key"), ask("/key")
	visit(t, addr).ends() // no place is left at all
	for _, v := range []visitor{backend, second, third, fourth, fifth} {
		v.send("/")
		if !v.answered() {
			t.Error("a connection with a key ends")
		}
	}
}

// TestPipelined: requests that come together are one too many, unless an API key came with the
// first.
func TestPipelined(t *testing.T) {
	addr, _ := keyed(t)
	probe := visit(t, addr)
	for range 50 { // a load balancer that keeps its connection
		probe.send("/")
		if !probe.answered() {
			t.Fatal("a probe that waits for its answers is cut off")
		}
	}
	piled := visit(t, addr)
	piled.send("/", "/", "/", "/")
	if first, second := piled.answered(), piled.answered(); !first || second {
		t.Errorf("the connection goes on after the first answer: %v, and the second: %v", first, second)
	}
	piled.ends()
	backend := visit(t, addr)
	backend.send("/key", "/", "/", "/")
	for range 4 {
		if !backend.answered() {
			t.Error("a backend may send on")
		}
	}
}

// TestEvictedOnce: a place is given back once, also when the connection ends as it is evicted.
func TestEvictedOnce(t *testing.T) {
	for range 200 {
		g := NewGate(1)
		one, other := net.Pipe()
		if !g.Enter() {
			t.Fatal("no place")
		}
		c := &gatedConn{Conn: one, place: newPlace(g, one, false)}
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

// TestNoAnswerTimeOnWebSocket: the deadline of an HTTP answer does not follow a connection that is
// taken over.
func TestNoAnswerTimeOnWebSocket(t *testing.T) {
	p, s := handedWay.serve(t, setup{answer: time.Nanosecond}).connect()
	p.write(p.message("x"))
	s.want(event{"message", "x"})
	s.do(func() { s.conn.Write(frame(`{"answer":true}`)) })
	p.want(event{"message", `{"answer":true}`})
}
