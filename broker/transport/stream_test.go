package transport

import (
	"io"
	"net/http"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"switchboard/broker/limit"
	"switchboard/internal/await"
	"switchboard/internal/wire"
)

func streamRequest(header string) []byte {
	return []byte("GET " + streamPath + " HTTP/1.1\r\nHost: broker.example\r\n" + header + "\r\n")
}

func TestStreamHello(t *testing.T) {
	over(t, streamWays, func(t *testing.T, w way) {
		p := w.serve(t, setup{open: func(s *session) {
			want := []wire.Request{
				{Type: wire.TypeConnect, Token: "header", Client: "phone"},
				{Type: wire.TypeSubscribe, Ref: wire.RefOf(1), Channel: "news"},
			}
			if !reflect.DeepEqual(s.first, want) {
				t.Errorf("the request stands for %+v, want %+v", s.first, want)
			}
			s.conn.Send(wire.Event{Type: wire.TypeConnected, Client: "phone", ID: new(int64)})
		}}).dial()
		p.write(streamRequest("Authorization: Bearer header\r\n"))
		resp := p.response()
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" {
			t.Errorf("the answer is %s, %s", resp.Status, got)
		}
		if got := resp.Header.Get("Cache-Control"); got != "no-store" || resp.Header.Get("Date") == "" {
			t.Errorf("the headers are %v", resp.Header)
		}
	})
}

func TestStreamThatIsRefused(t *testing.T) {
	final := []byte("GET /sse?last_event_id=EQAAAAFj HTTP/1.1\r\nHost: broker.example\r\n\r\n")
	over(t, streamWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{open: func(s *session) {
			s.conn.Send(wire.Event{Type: wire.TypeError, Code: "forbidden", Message: "not you"})
			s.conn.Close(wire.CloseUnauthorized, "not you", 0)
		}})
		for want, request := range map[int][]byte{
			http.StatusForbidden:  streamRequest(""), // by the session
			http.StatusBadRequest: []byte("GET /sse?channel= HTTP/1.1\r\nHost: broker.example\r\n\r\n"),
			http.StatusNoContent:  final,
		} {
			p := service.dial()
			p.write(request)
			resp := p.response()
			body, err := io.ReadAll(resp.Body)
			if resp.StatusCode != want || err != nil {
				t.Errorf("%s, %v, want %d", resp.Status, err, want)
			}
			if want == http.StatusForbidden && string(body) != `{"error":{"code":"forbidden","message":"not you"}}`+"\n" {
				t.Errorf("the body is %s", body)
			}
		}
		p := service.dial()
		p.write([]byte("HEAD /sse HTTP/1.1\r\nHost: broker.example\r\n\r\n"))
		if resp, err := http.ReadResponse(p.r, &http.Request{Method: "HEAD"}); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("HEAD: %v, %v", resp, err)
		}
		made := service.session()
		service.stop()
		made.wantSilence()
		if len(service.sessions) > 0 {
			t.Error("a refused request made a session")
		}
		await.True(t, "all places are free", func() bool { return service.gate.count.Load() == 0 })
	})
}

// TestStreamGate checks that a client above the limit receives a closing event with a retry delay.
func TestStreamGate(t *testing.T) {
	over(t, []way{streamWay, handedStreamWay}, func(t *testing.T, w way) {
		service := w.serve(t, setup{room: 1})
		first, s := service.connect()
		second := service.dial()
		second.write(streamRequest(""))
		second.wantClosing("overloaded", 0, "no room for another connection", overloadedMS)
		_ = first.Close()
		s.want(event{"closed", ""})
		s.do(func() {})
		await.True(t, "the place is free", func() bool { return service.gate.count.Load() == 0 })
		service.connect()
	})
}

// TestHTTP2Gate checks that each stream takes a place besides the place of its connection, and that
// the Gate does not close a connection with streams to make room.
func TestHTTP2Gate(t *testing.T) {
	service := http2Way.serve(t, setup{room: 3})
	first, s := service.connect()
	second, _ := service.connect()
	third := service.dial()
	third.write(streamRequest(""))
	third.wantClosing("overloaded", 0, "no room for another connection", overloadedMS)
	if n := service.gate.count.Load(); n != 3 {
		t.Errorf("%d places are taken, want 3", n)
	}
	s.do(func() { s.conn.Write(batchOf(`{"still":"here"}`)) })
	first.want(event{"message", `{"still":"here"}`})
	_ = second.Close()
	await.True(t, "the place is free", func() bool { return service.gate.count.Load() == 2 })
	service.connect()
}

// TestStreamAddresses checks that a stream counts for the address that a proxy names. Without a
// proxy, each HTTP/2 stream counts for the address of its connection.
func TestStreamAddresses(t *testing.T) {
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	over(t, streamWays, func(t *testing.T, w way) {
		w.start = withAddresses(w.start, limit.AddressOptions{Connections: 1, Proxies: []netip.Prefix{loopback}})
		service := w.serve(t, setup{open: func(s *session) {
			s.conn.Send(wire.Event{Type: wire.TypeConnected, Client: "phone", ID: new(int64)})
		}})
		dial := func() *peer {
			p := service.dial()
			p.write(streamRequest("X-Forwarded-For: 192.0.2.1\r\n"))
			return p
		}
		first := dial()
		if e := first.read(); e.kind != "connected" {
			t.Fatalf("the peer reads %v", e)
		}
		second := dial()
		second.wantClosing("overloaded", 0, "too many connections from this address", 5000)
		_ = first.Close()
		await.True(t, "the address is free", func() bool { return dial().read().kind == "connected" })
	})
	own := http2Way
	own.start = withAddresses(own.start, limit.AddressOptions{Connections: 1})
	service := own.serve(t, setup{})
	service.connect() // the Listener of this way counts no addresses
	second := service.dial()
	second.write(streamRequest(""))
	second.wantClosing("overloaded", 0, "too many connections from this address", 5000)
}

type startFunc = func(s *service, limits Limits, accept Accept, o setup) func()

func withAddresses(start startFunc, options limit.AddressOptions) startFunc {
	return func(s *service, limits Limits, accept Accept, o setup) func() {
		limits.Addresses, limits.Proxies = limit.NewAddresses(options), options.Proxies
		return start(s, limits, accept, o)
	}
}

// TestStreamOutlivesTheDeadlines checks that the server's deadlines for other requests do not end a
// stream.
func TestStreamOutlivesTheDeadlines(t *testing.T) {
	over(t, streamWays, func(t *testing.T, w way) {
		deadline := 100 * time.Millisecond
		if w.name == http2Way.name {
			deadline = time.Second // it applies to the TLS handshake, too
		}
		p, s := w.serve(t, setup{answer: deadline, read: deadline}).connect()
		for begin := time.Now(); time.Since(begin) < 2*deadline; {
			s.do(func() { s.conn.Write(batchOf(`{}`)) })
			p.want(event{"message", `{}`})
		}
	})
}

// TestStreamIsNotRead checks that a closed stream ends within lingerTime if the peer reads nothing.
func TestStreamIsNotRead(t *testing.T) {
	over(t, streamWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{linger: 10 * time.Millisecond})
		_, s := service.connect()
		s.do(func() {
			for i := range flood {
				s.conn.Write(batchOf(numbered(i)))
			}
			if !s.conn.Backlogged() {
				t.Error("the system's buffers took everything, so nothing is tested")
			}
			s.conn.Close(wire.CloseSlow, "", 0)
		})
		most := int64(0)
		if w.name == http2Way.name {
			most = 1 // the connection stays
		}
		await.True(t, "the place is free", func() bool { return service.gate.count.Load() <= most })
		service.stop()
		s.wantSilence()
	})
}

// TestInputAfterTheRequest checks that bytes after the request count for the rate limit and are
// otherwise ignored.
func TestInputAfterTheRequest(t *testing.T) {
	service := handedStreamWay.serve(t, setup{})
	p := service.dial()
	p.write(append(streamRequest(""), "early"...))
	s := service.session()
	p.write([]byte("late"))
	await.True(t, "the bytes are counted", func() bool {
		n := 0
		s.do(func() { n = s.control })
		return n > 0
	})
	s.do(func() { s.conn.Write(batchOf(`{}`)) })
	p.want(event{"message", `{}`})
}

// TestStreamWhenThePollerEnds hands a stream over to a Poller that has ended. The connection is
// closed and its place is free again.
func TestStreamWhenThePollerEnds(t *testing.T) {
	ended := way{"", false, true, func(s *service, limits Limits, accept Accept, o setup) func() {
		p, stop := runPoller(s, limits, accept, o)
		stop()
		web := NewWeb(1, 1, limits, dialects(), accept)
		web.Poller = p
		return serveWeb(s, web, limits, o)
	}}
	service := ended.serve(t, setup{})
	p := service.dial()
	p.write(streamRequest(""))
	if e := p.read(); e.kind != "end" && e.kind != "failure" {
		t.Fatalf("the peer reads %v", e)
	}
	service.stop()
	if n := service.gate.count.Load(); n != 0 || len(service.sessions) != 0 {
		t.Errorf("%d places are taken, %d sessions were made", n, len(service.sessions))
	}
}

// TestResponseBodyNeedsAHead checks that output that does not begin with a head is an error.
func TestResponseBodyNeedsAHead(t *testing.T) {
	for _, b := range []string{"data:x\n\n", "SPDY/3\r\n\r\n"} {
		if err := (&responseBody{}).write([]byte(b)); err == nil {
			t.Errorf("%q is written", b)
		}
	}
}
