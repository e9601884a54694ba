//go:build deploy

package deploy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"switchboard/internal/await"
)

// relay passes connections on to Redis. It can be cut.
type relay struct {
	listener net.Listener
	to       string

	mu    sync.Mutex // guards the fields below
	isCut bool
	conns map[net.Conn]struct{}
}

// startRelay returns a relay to the Redis at a URL, and the URL of the relay.
func startRelay(t *testing.T, redis string) (*relay, string) {
	t.Helper()
	u, err := url.Parse(redis)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, to: u.Host, conns: map[net.Conn]struct{}{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.pass(from) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); r.cut(true); running.Wait() })
	u.Host = l.Addr().String()
	return r, u.String()
}

// pass copies both directions of a connection until one of them ends.
func (r *relay) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", r.to)
	if err != nil || !r.add(from, to) {
		return
	}
	defer to.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(from, to)
		_ = from.Close()
	})
	_, _ = io.Copy(to, from)
	_ = to.Close()
	back.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, from)
	delete(r.conns, to)
}

// add notes the ends of a connection, or closes them if the relay is cut.
func (r *relay) add(ends ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range ends {
		if r.isCut {
			_ = c.Close()
		} else {
			r.conns[c] = struct{}{}
		}
	}
	return !r.isCut
}

// cut ends all connections and refuses new ones, or allows them again.
func (r *relay) cut(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = cut
	if cut {
		for c := range r.conns {
			_ = c.Close()
		}
	}
}

// TestBrokerWithoutRedis: one broker runs, but cannot reach Redis for some time. The load balancer
// sends new clients and calls to the others, and uses the broker again afterwards. No client loses
// a message.
func TestBrokerWithoutRedis(t *testing.T) {
	for name, start := range map[string]balancer{"haproxy": haproxy, "nginx": nginx} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			var toRedis *relay
			toRedis, c.brokers[0].redis = startRelay(t, c.redis.URL())
			c.startAll(start)
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer cancel()
			follow := func(i int) []*follower {
				return []*follower{
					c.followOver(ctx, &running, "ws://"+c.web+"/ws", fmt.Sprint("ws-", i)),
					c.followOver(ctx, &running, "tcp://"+c.line, fmt.Sprint("tcp-", i)),
					c.followStream(ctx, &running, fmt.Sprint("sse-", i)),
				}
			}
			var all []*follower
			for i := range 4 {
				all = append(all, follow(i)...)
			}
			c.wantEverywhere(all, "b1", "b2", "b3")
			news := c.push("news")
			defer news.stop()

			toRedis.cut(true)
			c.awaitReadyz(c.brokers[0], http.StatusServiceUnavailable)
			if name == "haproxy" {
				c.wantNoNewConnections(c.brokers[0], "broker-1")
			}
			c.wantAnswers(12)
			for i := 4; i < 8; i++ {
				late := follow(i)
				c.wantEverywhere(late, "b2", "b3")
			}

			toRedis.cut(false)
			c.awaitReady(c.brokers[0])
			if name == "haproxy" {
				await.True(t, "HAProxy uses the broker again", func() bool { return strings.Count(c.states(), "broker-1,UP") == 2 })
			}
			c.wantConnection(c.brokers[0])
			n := news.stop()
			for _, f := range all {
				await.NoError(within(t), t, f.name+" has everything", func() error { return f.check(n) })
			}
			t.Logf("%d messages to %d clients", n, len(all))
		})
	}
}

// wantAnswers makes n calls that read from Redis. Each one has an answer at once: the load balancer
// tries another broker if one cannot reach Redis.
func (c *cluster) wantAnswers(n int) {
	c.t.Helper()
	for range n {
		resp, err := http.Get("http://" + c.web + "/v1/channels/news")
		if err != nil {
			c.t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			c.t.Errorf("GET /v1/channels/news: %s", resp.Status)
		}
	}
}

// wantConnection connects until a connection goes to the broker.
func (c *cluster) wantConnection(n *node) {
	c.t.Helper()
	await.True(c.t, n.name+" gets a new connection", func() bool {
		conn := c.dialFrom("127.0.0.9", c.line)
		if _, err := io.WriteString(conn, `{"type":"connect"}`+"\n"); err != nil {
			c.t.Fatal(err)
		}
		return readServer(c.t, conn) == n.name
	})
}
