package broker_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/hook"
	"switchboard/broker/namespace"
	"switchboard/internal/signedreq"
	"switchboard/queue"
)

// TestRequestsToURL checks that a broker in memory sends the requests of clients to the backend,
// and what a client receives for each kind of answer.
func TestRequestsToURL(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			User  string
			Query string
		}
		if err := signedreq.Decode(r, "shared with the backend", &request); err != nil {
			t.Error(err)
		}
		switch request.Query {
		case "refuse":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"error":{"code":"forbidden","message":"not you"}}`)
		case "fail":
			w.WriteHeader(http.StatusInternalServerError)
		case "hang":
			<-r.Context().Done()
		default:
			fmt.Fprintf(w, `{"for": %q}`, request.User)
		}
	}))
	t.Cleanup(backend.Close)
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Requests.From = namespace.Users
		o.Requests.Backend = hook.RequestOptions{URL: backend.URL, Secrets: []string{"shared with the backend"}, Timeout: 500 * time.Millisecond}
	})
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		p := dial(i)
		p.send(`{"type":"connect","client":"phone","user":"alice","ref":1}`)
		p.expect(object{"type": "connected"})
		for query, want := range map[string]object{
			"hello":  {"type": "reply", "data": object{"for": "alice"}},
			"refuse": {"type": "error", "code": "forbidden", "message": "not you"},
			"fail":   {"type": "error", "code": "unavailable"},
			"hang":   {"type": "error", "code": "timeout"},
		} {
			p.send(`{"type":"request","ref":2,"data":%q}`, query)
			p.expect(want)
		}
		p.close()
	})
}

// TestRequestShare: a user, or an address of clients without a user, that sends more requests than
// its share, on several connections, is refused. Requests of others are answered meanwhile.
func TestRequestShare(t *testing.T) {
	waiting := make(chan struct{}, 16)
	ctx, goOn := context.WithCancel(t.Context())
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Query string }
		if err := signedreq.Decode(r, "shared with the backend", &request); err != nil {
			t.Error(err)
		}
		if request.Query == "hang" {
			waiting <- struct{}{}
			<-ctx.Done()
		}
		_, _ = io.WriteString(w, `{"n":1}`)
	}))
	t.Cleanup(backend.Close)
	t.Cleanup(goOn) // Close waits for the answers
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Requests.From = namespace.Anyone
		o.Requests.Backend = hook.RequestOptions{URL: backend.URL, Secrets: []string{"shared with the backend"}, Timeout: testTimeout, Concurrency: 9}
		o.Limits.ProxyProtocol = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	dial := func(address, connect string, args ...any) *testClient {
		p := dialLines(t, net.Dialer{}, i.TCP)
		p.send("PROXY TCP4 %s 127.0.0.1 51312 7070\r", address)
		p.send(connect, args...)
		p.expect(object{"type": "connected"})
		return p
	}
	const hang = `{"type":"request","ref":1,"data":"hang"}`
	flood := func(connections []*testClient) {
		t.Helper()
		for _, p := range connections[:2] { // a quarter of nine
			p.send(hang)
			<-waiting
		}
		for _, p := range connections {
			p.send(`{"type":"request","ref":2,"data":"one more"}`)
			p.expect(object{"type": "error", "ref": 2, "code": "rate_limited", "after_ms": 1000,
				"message": "2 requests of this user or address wait for the backend (requests.share); try again in 1000 ms"})
		}
	}
	var users, anonymous []*testClient
	for n := range 5 {
		users = append(users, dial(fmt.Sprintf("192.0.2.%d", n+1), `{"type":"connect","client":"c%d","user":"alice"}`, n))
		anonymous = append(anonymous, dial("198.51.100.1", `{"type":"connect","client":"anonymous-%d"}`, n))
	}
	flood(users)
	flood(anonymous)
	for _, p := range []*testClient{
		dial("192.0.2.1", `{"type":"connect","client":"phone","user":"bob"}`),
		dial("198.51.100.2", `{"type":"connect","client":"anonymous-9"}`),
	} {
		p.send(`{"type":"request","ref":1,"data":"hello"}`)
		p.expect(object{"type": "reply", "data": object{"n": 1}})
	}
	if text := metricsOf(t, i); !strings.Contains(text, `switchboard_refusals_total{what="request_share"} 10`) {
		t.Error("want 10 refusals in the metrics")
	}
	goOn()
	for _, p := range []*testClient{users[0], anonymous[0]} {
		p.expect(object{"type": "reply", "ref": 1})
		p.send(`{"type":"request","ref":3,"data":"again"}`)
		p.expect(object{"type": "reply", "ref": 3})
	}
}
