package broker_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
)

// TestClientAddress: the API shows the address that a load balancer names, on every transport.
func TestClientAddress(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	const (
		header    = "PROXY TCP4 192.0.2.7 127.0.0.1 51312 7070\r\n"
		lines     = `{"type":"connect","client":"phone"}` + "\n"
		forwarded = "X-Forwarded-For: 203.0.113.1, 192.0.2.8\r\n"
	)
	request := func(path, more string) string {
		return "GET " + path + "client=phone HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n"
	}
	const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for name, c := range map[string]struct {
		sent, want string
		http       bool // on the HTTP port
		compress   bool
		headers    bool // the load balancer sends PROXY headers
	}{
		"PROXY, TCP":                {sent: header + lines, want: "192.0.2.7:51312", headers: true},
		"PROXY, WebSocket on TCP":   {sent: header + request("/ws?", upgrade), want: "192.0.2.7:51312", headers: true},
		"PROXY, WebSocket":          {sent: header + request("/ws?", upgrade), want: "192.0.2.7:51312", headers: true, http: true},
		"PROXY, SSE":                {sent: header + request("/sse?", ""), want: "192.0.2.7:51312", headers: true, http: true},
		"PROXY by a proxy of one":   {sent: "PROXY TCP4 127.0.0.9 127.0.0.1 1 2\r\n" + request("/ws?", upgrade+forwarded), want: "192.0.2.8:0", headers: true},
		"forwarded, WS on TCP":      {sent: request("/ws?", upgrade+forwarded), want: "192.0.2.8:0"},
		"forwarded, WebSocket":      {sent: request("/ws?", upgrade+forwarded), want: "192.0.2.8:0", http: true},
		"forwarded, compressed":     {sent: request("/ws?", upgrade+forwarded+"Sec-WebSocket-Extensions: permessage-deflate\r\n"), want: "192.0.2.8:0", http: true, compress: true},
		"forwarded, SSE":            {sent: request("/sse?", forwarded), want: "192.0.2.8:0", http: true},
		"forwarded by a client, WS": {sent: header + request("/ws?", upgrade+"X-Forwarded-For: 203.0.113.1\r\n"), want: "192.0.2.7:51312", headers: true},
	} {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
				o.Limits.Proxies, o.Runtime.Compression, o.Listen.Probes = loopback, c.compress, "127.0.0.1:0"
				if c.headers {
					o.Limits.ProxyProtocol = loopback
				}
				if c.headers && c.http {
					o.Limits.ProxyProtocolHTTP = loopback
				}
			})
			port := i.TCP
			if c.http {
				port = i.HTTP
			}
			conn, err := net.Dial("tcp", port)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(testTimeout))
			if _, err := io.WriteString(conn, c.sent); err != nil {
				t.Fatal(err)
			}
			await.True(t, "the client has the address "+c.want, func() bool {
				var answer object
				get(t, i.HTTP, c.http && c.headers, "/v1/clients/phone", &answer)
				return answer["address"] == c.want
			})
		})
	}
}

// get calls the API as a load balancer does, with a PROXY header for itself if headers is true.
func get(t *testing.T, addr string, headers bool, path string, answer any) {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil && headers {
			_, err = io.WriteString(conn, "PROXY UNKNOWN\r\n")
		}
		return conn, err
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: testTimeout}).Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_ = json.NewDecoder(resp.Body).Decode(answer) // 404 until the client is bound
}
