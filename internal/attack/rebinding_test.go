//go:build long

package attack

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/internal/testbed"
)

// openBroker starts a broker without keys and without Redis. It runs until the test ends.
func openBroker(t *testing.T, environ []string, args ...string) (httpPort, tcpPort string) {
	t.Helper()
	b := testbed.RunBroker(t, &testbed.Broker{Program: testbed.Program{
		Name: "broker", Path: brokerPath, Args: append([]string{"--drain-time", "1ms"}, args...), Env: environ,
	}})
	return b.HTTP, b.TCP
}

// A pageConn is a connection from the browser of a user that visits a malicious page.
type pageConn struct {
	net.Conn
	in *bufio.Reader
}

func dialPage(t *testing.T, address string) pageConn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(closeTimeout))
	return pageConn{conn, bufio.NewReader(conn)}
}

// ask sends a request with the additional header lines in more. It returns the status and the body
// of the response.
func (b pageConn) ask(t *testing.T, method, path, host, more, body string) (status int, answer string) {
	t.Helper()
	_, err := fmt.Fprintf(b, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n%s\r\n%s", method, path, host, len(body), more, body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(b.in, nil)
	if err != nil {
		t.Fatalf("%s %s to %s: %v", method, path, host, err)
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		return response.StatusCode, ""
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

const (
	push    = `{"channel":"news","data":"from another page"}`
	upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)

// TestRebinding simulates a page whose host name resolves to the broker's address (DNS rebinding).
// The browser then treats requests to the broker as same-origin, so their headers do not show the
// attack.
func TestRebinding(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args             []string
		environ          []string
		refused, allowed []string
	}{
		"on loopback": {
			refused: []string{"evil.example", "evil.example:8080", "192.168.1.5:8080", "localhost.evil.example", "127.0.0.1.evil.example"},
			allowed: []string{"localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080"},
		},
		"with configured hosts": {
			environ: []string{"SWITCHBOARD_HOSTS=push.example,*.internal.example"},
			refused: []string{"evil.example", "10.0.0.1", "push.example.evil.example"},
			allowed: []string{"localhost", "push.example:443", "a.internal.example"},
		},
		"with --insecure": {
			args: []string{"--insecure"}, refused: []string{"evil.example", "broker:8080"},
			allowed: []string{"localhost", "192.168.1.5:8080", "[fd00::1]:8080"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHTTP, onTCP := openBroker(t, row.environ, row.args...)
			for _, host := range row.refused {
				checkRefused(t, onHTTP, onTCP, host)
			}
			for _, host := range row.allowed {
				sameOrigin := "Origin: http://" + host + "\r\nSec-Fetch-Site: same-origin\r\n"
				if status, body := dialPage(t, onHTTP).ask(t, "POST", "/v1/push", host, sameOrigin, push); status != http.StatusOK {
					t.Errorf("%s: %d %s", host, status, body)
				}
				for _, port := range []string{onHTTP, onTCP} {
					if status, body := dialPage(t, port).ask(t, "GET", "/ws?client=tab", host, sameOrigin+upgrade, ""); status != http.StatusSwitchingProtocols {
						t.Errorf("%s: %d %s", host, status, body)
					}
				}
			}
		})
	}
}

// checkRefused checks that both ports refuse all requests of a page of host.
func checkRefused(t *testing.T, onHTTP, onTCP, host string) {
	t.Helper()
	refused := func(what string, status int, body string) {
		t.Helper()
		if status != http.StatusForbidden || !strings.Contains(body, "setting hosts") {
			t.Errorf("%s, %s: %d %s", host, what, status, body)
		}
	}
	sameOrigin := "Origin: http://" + host + "\r\nSec-Fetch-Site: same-origin\r\n"
	for _, path := range []string{
		"/v1/servers", "/v1/channels/news", "/v1/users/alice", "/healthz", "/readyz", "/metrics", "/debug/pprof/cmdline", "/", "/nowhere",
	} {
		status, body := dialPage(t, onHTTP).ask(t, "GET", path, host, "", "")
		refused(path, status, body)
	}
	status, body := dialPage(t, onHTTP).ask(t, "POST", "/v1/push", host, sameOrigin, push)
	refused("a push", status, body)
	for _, port := range []string{onHTTP, onTCP} {
		status, body = dialPage(t, port).ask(t, "GET", "/ws?client=tab", host, sameOrigin+upgrade, "")
		refused("a WebSocket", status, body)
	}
	b := dialPage(t, onHTTP) // like a local proxy that uses one connection for all its clients
	for range 3 {
		for range 3 {
			if status, body := b.ask(t, "POST", "/v1/push", "127.0.0.1", "", push); status != http.StatusOK {
				t.Fatalf("a local push: %d %s", status, body)
			}
		}
		status, body := b.ask(t, "POST", "/v1/push", host, "", push)
		refused("a push after local pushes", status, body)
	}
}

// TestCrossProtocol simulates a page that posts to the TCP port. The broker must not treat the
// lines of the body as messages.
func TestCrossProtocol(t *testing.T) {
	t.Parallel()
	onHTTP, onTCP := openBroker(t, nil)
	lines := `{"type":"connect","client":"page","user":"mallory"}` + "\n" + `{"type":"publish","channel":"news","data":"from another page"}` + "\n"
	for _, method := range []string{"POST", "PUT", "OPTIONS", "DELETE", "HEAD", "PATCH", "QUERY"} {
		b := dialPage(t, onTCP)
		_, err := fmt.Fprintf(b, "%s / HTTP/1.1\r\nHost: 127.0.0.1:7070\r\nOrigin: http://evil.example\r\n"+
			"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", method, len(lines), lines)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(b.in) // up to the end of the connection
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") || strings.Contains(string(answer), `"type"`) {
			t.Errorf("%s: %s", method, answer)
		}
	}
	if _, body := dialPage(t, onHTTP).ask(t, "GET", "/v1/users/mallory", "localhost", "", ""); !strings.Contains(body, `"online":false`) {
		t.Errorf("mallory: %s", body)
	}
	if _, body := dialPage(t, onHTTP).ask(t, "GET", "/v1/channels/news", "localhost", "", ""); !strings.Contains(body, `"messages":0`) {
		t.Errorf("news: %s", body)
	}
}
