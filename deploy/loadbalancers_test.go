//go:build deploy

package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/ssetest"
)

// follower is a client that follows a channel through the load balancer.
type follower struct {
	name string

	mu     sync.Mutex // guards the fields below
	got    []int
	gaps   int
	server string // of its connection
}

func (f *follower) add(data []byte) error {
	var n int
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, n)
	return nil
}

func (f *follower) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// check returns an error unless the follower has received 1, 2, … n in this order.
func (f *follower) check(n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	want := make([]int, n)
	for i := range want {
		want[i] = i + 1
	}
	if f.gaps > 0 || !slices.Equal(f.got, want) {
		return fmt.Errorf("%s has received %d messages (%v…), %d gaps; want %d messages", f.name, len(f.got), tail(f.got), f.gaps, n)
	}
	return nil
}

func tail(list []int) []int { return list[max(0, len(list)-5):] }

// followOver starts a client over WebSocket or TCP.
func (c *cluster) followOver(ctx context.Context, running *sync.WaitGroup, url, name string) *follower {
	f := &follower{name: name}
	sb, err := client.New(client.Options{
		URLs: []string{url}, Client: name, BackoffMin: 50 * time.Millisecond, BackoffMax: time.Second,
		OnMessage: func(m client.Message) {
			if err := f.add(m.Data); err != nil {
				c.t.Error(err)
			}
		},
		OnGap: func(client.Gap) { f.locked(func() { f.gaps++ }) },
		OnState: func(s client.State) {
			if s.Phase == client.Connected {
				f.locked(func() { f.server, _, _ = strings.Cut(s.Server, "-") })
			}
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	running.Go(func() { _ = sb.Run(ctx) })
	if _, err := sb.Subscribe(ctx, "news", client.SubscribeOptions{}); err != nil {
		c.t.Fatal(err)
	}
	return f
}

// followStream starts a client over Server-Sent Events. As an EventSource does, it gives up after
// an answer that is not a stream.
func (c *cluster) followStream(ctx context.Context, running *sync.WaitGroup, name string) *follower {
	f := &follower{name: name}
	subscribed := make(chan struct{})
	once := sync.OnceFunc(func() { close(subscribed) })
	stream := ssetest.Client{
		URL: func() string { return "http://" + c.web + "/sse?channel=news&client=" + name },
		OnEvent: func(e ssetest.Event) error {
			var message struct {
				Server string
				Data   json.RawMessage
			}
			if err := json.Unmarshal([]byte(e.Data), &message); err != nil {
				return err
			}
			switch e.Name {
			case "connected":
				f.locked(func() { f.server, _, _ = strings.Cut(message.Server, "-") })
			case "subscribed":
				once()
			case "gap":
				f.locked(func() { f.gaps++ })
			case "message":
				return f.add(message.Data)
			}
			return nil
		},
	}
	running.Go(func() {
		if err := stream.Run(ctx); err != nil {
			c.t.Errorf("%s gives up: %v", name, err)
		}
	})
	select {
	case <-subscribed:
	case <-within(c.t).Done():
		c.t.Fatalf("%s is not subscribed", name)
	}
	return f
}

// TestLoadBalancers: clients over WebSocket, Server-Sent Events and TCP follow a channel through
// the load balancer. One broker is killed, and one is drained. No message is lost, and none is
// repeated.
func TestLoadBalancers(t *testing.T) {
	for name, start := range map[string]balancer{"haproxy": haproxy, "nginx": nginx} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, start)
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer cancel()
			var all []*follower
			for i := range 4 {
				all = append(all,
					c.followOver(ctx, &running, "ws://"+c.web+"/ws", fmt.Sprint("ws-", i)),
					c.followOver(ctx, &running, "tcp://"+c.line, fmt.Sprint("tcp-", i)),
					c.followStream(ctx, &running, fmt.Sprint("sse-", i)))
			}
			c.wantEverywhere(all, "b1", "b2", "b3")
			news := c.push("news")
			defer news.stop()

			c.brokers[0].process.Kill()
			c.wantEverywhere(all, "b2", "b3")
			c.start(c.brokers[0])
			c.awaitReady(c.brokers[0])

			if err := c.brokers[1].process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if name == "haproxy" {
				c.wantNoNewConnections(c.brokers[1], "broker-2")
			}
			if code, err := c.brokers[1].process.Wait(within(t)); code != 0 || err != nil {
				t.Errorf("the drained broker ended with %d, %v", code, err)
			}
			c.wantEverywhere(all, "b1", "b3")
			c.start(c.brokers[1])
			c.awaitReady(c.brokers[1])

			n := news.stop()
			for _, f := range all {
				await.NoError(within(t), t, f.name+" has everything", func() error { return f.check(n) })
			}
			t.Logf("%d messages to %d clients", n, len(all))
		})
	}
}

// wantEverywhere waits until all followers are connected, to some of these brokers.
func (c *cluster) wantEverywhere(all []*follower, brokers ...string) {
	c.t.Helper()
	await.True(c.t, fmt.Sprint("all clients are connected to ", brokers), func() bool {
		for _, f := range all {
			f.mu.Lock()
			server := f.server
			f.mu.Unlock()
			if !slices.Contains(brokers, server) {
				return false
			}
		}
		return true
	})
}

// wantNoNewConnections waits until HAProxy has noticed that a broker is not ready, and checks that
// it gets no new connections.
func (c *cluster) wantNoNewConnections(n *node, backend string) {
	c.t.Helper()
	await.True(c.t, "HAProxy sees that "+n.name+" is not ready", func() bool {
		return strings.Count(c.states(), backend+",DOWN") == 2
	})
	for i := range 6 {
		for to, begin := range map[string]string{c.line: `{"type":"connect"}` + "\n", c.web: handshake("new")} {
			conn := c.dialFrom("127.0.0.9", to)
			if _, err := io.WriteString(conn, begin); err != nil {
				c.t.Fatal(err)
			}
			if server := readServer(c.t, conn); server == n.name {
				c.t.Errorf("connection %d to %s went to %s", i, to, server)
			}
			_ = conn.Close()
		}
	}
}

// readServer reads from a new connection until it names its broker.
func readServer(t *testing.T, conn io.Reader) string {
	t.Helper()
	var text []byte
	for buf := make([]byte, 4096); ; {
		n, err := conn.Read(buf)
		if text = append(text, buf[:n]...); err != nil {
			t.Fatalf("%v after %q", err, text)
		}
		if _, after, ok := strings.Cut(string(text), `"server":"`); ok && strings.Contains(after, "-") {
			server, _, _ := strings.Cut(after, "-")
			return server
		}
	}
}

// states returns a line for each server of HAProxy: name,state.
func (c *cluster) states() string {
	c.t.Helper()
	resp, err := http.Get("http://" + c.status + "/;csv")
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var list strings.Builder
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, ","); len(fields) > 17 {
			fmt.Fprintf(&list, "%s,%s\n", fields[1], fields[17])
		}
	}
	return list.String()
}

// dialFrom connects to the load balancer from another loopback address.
func (c *cluster) dialFrom(address, to string) net.Conn {
	c.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := d.DialContext(c.t.Context(), "tcp", to)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testTimeout))
	return conn
}

// TestClientAddresses: the brokers see the address of each client, and not that of the load
// balancer, on every transport.
func TestClientAddresses(t *testing.T) {
	for name, start := range map[string]balancer{"haproxy": haproxy, "nginx": nginx} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, start)
			for i, way := range []struct{ name, to, begin string }{
				{"tcp", c.line, `{"type":"connect","client":"tcp"}` + "\n"},
				{"ws on tcp", c.line, handshake("ws-on-tcp")},
				{"ws", c.web, handshake("ws")},
				{"sse", c.web, "GET /sse?client=sse HTTP/1.1\r\nHost: localhost\r\n\r\n"},
				{"invented", c.web, strings.Replace(handshake("invented"), "\r\n\r\n", "\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n", 1)},
			} {
				address := fmt.Sprintf("127.0.0.%d", i+10)
				conn := c.dialFrom(address, way.to)
				if _, err := io.WriteString(conn, way.begin); err != nil {
					t.Fatal(err)
				}
				var got struct{ Address string }
				await.True(t, way.name+" is connected", func() bool {
					c.call("GET", "/v1/clients/"+strings.ReplaceAll(way.name, " ", "-"), "", &got)
					return got.Address != ""
				})
				if host, _, _ := net.SplitHostPort(got.Address); host != address {
					t.Errorf("%s: the broker sees %s, want %s", way.name, got.Address, address)
				}
			}
			if resp, err := http.Get("http://" + c.web + "/metrics"); err != nil || resp.StatusCode != http.StatusNotFound {
				t.Errorf("metrics are public: %v %v", resp, err)
			}
		})
	}
}

// handshake returns a WebSocket handshake.
func handshake(client string) string {
	return "GET /ws?client=" + client + " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
}
