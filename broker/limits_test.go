package broker_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/internal/await"
	"switchboard/internal/certfile"
	"switchboard/internal/certtest"
	"switchboard/queue"
	"switchboard/registry"
)

// TestPushRate: after one large call, the rate of an API key is used up, also over fast push.
func TestPushRate(t *testing.T) {
	entries := keys(t, keyOne, keyTwo)
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Access.Keys, o.Access.Tokens, o.Limits.PushRate = entries, tokens(t, auth.Options{HS256: [][]byte{tokenSecret}}), 1
	})
	push := func(key string, want int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+i.HTTP+"/v1/push", strings.NewReader(`{"channel":"news","data":1}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		if resp.StatusCode != want || (want == http.StatusTooManyRequests) != (after > 1 && strings.Contains(string(text), "rate_limited")) {
			t.Fatalf("key %s: %d %s, Retry-After %d, want %d", key, resp.StatusCode, text, after, want)
		}
	}
	push(keyOne, http.StatusOK) // fast push serves the following calls
	body := `{"messages":[` + strings.Repeat(`{"channel":"news","data":1},`, 999) + `{"channel":"news","data":1}]}`
	if status, text := i.callWithKey(t, keyOne, "POST", "/v1/push/batch", body); status != http.StatusOK {
		t.Fatal(status, text)
	}
	for range 3 {
		push(keyOne, http.StatusTooManyRequests)
	}
	push(keyTwo, http.StatusOK)
	if err := i.Reload(broker.AccessOptions{Keys: entries, Tokens: tokens(t, auth.Options{HS256: [][]byte{tokenSecret}})}); err != nil {
		t.Fatal(err)
	}
	push(keyOne, http.StatusTooManyRequests) // also after a reload
	if status, text := i.callWithKey(t, keyOne, "GET", "/v1/servers", ""); status != http.StatusOK {
		t.Errorf("a read was limited: %d %s", status, text)
	}
	_, metrics := i.callWithKey(t, keyOne, "GET", "/metrics", "")
	if want := `switchboard_pushes_total{code="rate_limited",kind="channel"} 4`; !strings.Contains(metrics, want) {
		t.Errorf("%s is not in the metrics", want)
	}
}

// TestUserConnections: a user has a third device, and two are allowed.
func TestUserConnections(t *testing.T) {
	reg := registry.NewMemory(registry.Options{MaxOnline: 2})
	s := store{registry: reg, queue: queue.NewMemory(queue.Options{}, func(channel string) []string {
		servers, _ := reg.ChannelServers(context.Background(), channel)
		return servers
	})}
	i := start(t, s, nil)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		user := t.Name() // each subtest has a user of its own
		one, two := dial(i), dial(i)
		one.connect("one", user)
		two.connect("two", user)
		three := dial(i)
		three.send(`{"type":"connect","client":%q,"user":%q}`, "three", user)
		three.expect(object{"type": "error", "code": "rate_limited"})
		three.expect(object{"type": "closing", "code": "overloaded", "reconnect": true})
		again := dial(i) // the same client again does not count twice
		again.connect("one", user)
		two.close()
		await.True(t, "another connection is accepted after one has closed", func() bool {
			four := dial(i)
			defer four.close()
			four.send(`{"type":"connect","client":%q,"user":%q}`, "four", user)
			return four.receive()["type"] == "connected"
		})
	})
	_, metrics := i.callWithKey(t, "", "GET", "/metrics", "")
	if !strings.Contains(metrics, `switchboard_refusals_total{what="user_connections"}`) {
		t.Error("the refusal is not counted")
	}
}

// TestAddressConnections: an address opens a third connection, and two are allowed, on either port.
func TestAddressConnections(t *testing.T) {
	for name, want := range map[string][]string{
		"HTTP": {"HTTP/1.1 429 Too Many Requests\r\n", "Retry-After: 5\r\n", "too many connections from this address"},
		"TCP":  {`"code":"overloaded"`, `"after_ms":5000`, "too many connections from this address"},
	} {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Limits.AddressConnections, o.Limits.Connections = 2, 8 })
			port := map[string]string{"HTTP": i.HTTP, "TCP": i.TCP}[name]
			first := dialLines(t, net.Dialer{}, i.TCP)
			first.connect("first", "")
			second := dialWS(t, "ws://"+i.HTTP+"/ws")
			second.connect("second", "")
			for range 10 { // a refused connection does not count for the process either
				text := rawRequest(t, port, "/ws")
				for _, part := range want {
					if !strings.Contains(text, part) {
						t.Errorf("%q: want %q in it", text, part)
					}
				}
			}
			second.close()
			for range 3 {
				await.True(t, "an API call is accepted, and no longer counted afterwards", func() bool { return strings.Contains(rawRequest(t, i.HTTP, "/healthz"), " 200 OK") })
			}
			await.True(t, "another connection is accepted after one has closed", func() bool { return accepts(t, port) })
		})
	}
}

// TestAddressConnectionsOverTLS: a refused connection closes before the TLS handshake.
func TestAddressConnectionsOverTLS(t *testing.T) {
	ca := certtest.New(t)
	pair := ca.Pair()
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Limits.AddressConnections, o.Listen.TLS = 1, files(t, certfile.Options{Cert: pair.Cert, Key: pair.Key})
	})
	config := &tls.Config{RootCAs: ca.Pool()}
	first := dialWSS(t, i.HTTP, config)
	first.connect("first", "")
	second, err := net.Dial("tcp", i.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	_ = second.SetDeadline(time.Now().Add(testTimeout))
	if text, err := io.ReadAll(second); len(text) > 0 || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	first.close()
	await.True(t, "another connection is accepted after one has closed", func() bool {
		c, err := tls.Dial("tcp", i.HTTP, config)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// rawRequest sends a request on a new connection and returns all that it receives.
func rawRequest(t *testing.T, port, path string) string {
	t.Helper()
	c, err := net.Dial("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	text, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// accepts reports whether a port accepts a new client connection.
func accepts(t *testing.T, port string) bool {
	t.Helper()
	c, err := net.Dial("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	_, _ = io.WriteString(c, "GET /ws?client=late HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.Contains(line, "101")
}

// TestForwardedAddresses: the address limits count the address that a trusted proxy forwards, on
// every transport of WebSockets.
func TestForwardedAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		port     func(instance) string
		compress bool
		trusted  bool
	}{
		"on the loop":             {func(i instance) string { return i.TCP }, false, true},
		"handed over":             {func(i instance) string { return i.HTTP }, false, true},
		"compressed, on net/http": {func(i instance) string { return i.HTTP }, true, true},
		"not a trusted proxy":     {func(i instance) string { return i.TCP }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
				o.Limits.AddressConnections, o.Runtime.Compression = 1, c.compress
				if o.Limits.Proxies = nil; c.trusted {
					o.Limits.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
				}
			})
			dial := func(forwarded string) (*websocket.Conn, int) {
				mode := websocket.CompressionDisabled
				if c.compress {
					mode = websocket.CompressionNoContextTakeover
				}
				ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
				defer cancel()
				ws, resp, err := websocket.Dial(ctx, "ws://"+c.port(i)+"/ws", &websocket.DialOptions{
					CompressionMode: mode, HTTPHeader: http.Header{"X-Forwarded-For": {forwarded}},
					HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
				})
				if err != nil && resp == nil {
					return nil, 0
				}
				if err == nil {
					t.Cleanup(func() { _ = ws.CloseNow() })
				}
				return ws, resp.StatusCode
			}
			first, status := dial("192.0.2.1")
			if status != http.StatusSwitchingProtocols {
				t.Fatal(status)
			}
			if !c.trusted {
				if _, status := dial("192.0.2.2"); status == http.StatusSwitchingProtocols {
					t.Error("X-Forwarded-For of an untrusted proxy was believed")
				}
				return
			}
			for forwarded, want := range map[string]int{"192.0.2.1": 429, "203.0.113.1, 192.0.2.1": 429, "192.0.2.2": 101, "192.0.2.1, 192.0.2.3": 101} {
				if _, status := dial(forwarded); status != want {
					t.Errorf("for %s: %d, want %d", forwarded, status, want)
				}
			}
			_ = first.CloseNow()
			await.True(t, "another connection is accepted after one has closed", func() bool {
				_, status := dial("192.0.2.1")
				return status == http.StatusSwitchingProtocols
			})
			_, metrics := i.callWithKey(t, "", "GET", "/metrics", "")
			if !strings.Contains(metrics, `switchboard_refusals_total{what="address_connections"}`) {
				t.Error("the refusal is not counted")
			}
		})
	}
}
