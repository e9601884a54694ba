package broker_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/queue"
)

// TestOpenPorts: a port that is open to all callers, since keys are missing, refuses unknown hosts.
func TestOpenPorts(t *testing.T) {
	for name, c := range map[string]struct {
		keys, tokens, onHTTP, onTCP bool // onHTTP and onTCP: the port is open to all callers
	}{
		"none":       {false, false, true, true},
		"API keys":   {true, false, true, true},
		"token keys": {false, true, true, false},
		"both":       {true, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
				if c.keys {
					o.Access.Keys = keys(t, keyOne)
				}
				if c.tokens {
					o.Access.Tokens = tokens(t, auth.Options{HS256: [][]byte{tokenSecret}})
				}
			})
			for address, open := range map[string]bool{i.HTTP: c.onHTTP, i.TCP: c.onTCP} {
				if got := handshake(t, address, "evil.example"); (got == http.StatusForbidden) != open {
					t.Errorf("%+v: %s answers %d", i.Addrs, address, got)
				}
			}
		})
	}
}

// TestOwnNames: the names that the broker listens on and advertises are known hosts too.
func TestOwnNames(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Listen.HTTP, o.Links.Advertise, o.Access.Hosts.Patterns = "localhost:0", "a.internal:7071", []string{"push.example"}
	})
	for host, want := range map[string]int{
		"a.internal:7071": 101, "A.internal": 101, "push.example:8080": 101, "b.internal": 403, "10.0.0.1": 403, "off": 403, "": 403,
	} {
		if got := handshake(t, i.HTTP, host); got != want {
			t.Errorf("%q: %d, want %d", host, got, want)
		}
	}
}

// handshake requests a WebSocket with the given Host header and returns the status.
func handshake(t *testing.T, address, host string) int {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	_, err = fmt.Fprintf(c, "GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", host)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	return r.StatusCode
}
