//go:build long

package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const probe = "GET /healthz HTTP/1.1\r\nHost: broker\r\n\r\n"

// pipelinedProbes sends thousands of requests without waiting for responses. The broker must answer
// only a few of them. A health check that waits for each response may keep its connection.
func pipelinedProbes(t *testing.T, s *scenario) {
	for _, request := range []string{probe, "GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n", strings.Replace(s.pushHead(0), s.Key, "forged", 1)} {
		a, err := s.dial(true, nil)
		if err != nil {
			t.Fatal(err)
		}
		go a.sendRaw(strings.Repeat(request, 5000))
		answers := 0
		for ; answers < 5000; answers++ {
			if err := a.skipResponse(); err != nil {
				break
			}
		}
		_ = a.Close()
		if answers == 0 || answers > 3 {
			t.Errorf("%.20q has %d responses", request, answers)
		}
	}
	check, err := s.dial(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer check.Close()
	for n := range 100 {
		check.sendRaw(probe)
		if err := check.skipResponse(); err != nil {
			t.Fatalf("health check %d on one connection: %v", n, err)
		}
	}
}

// skipResponse reads one HTTP response.
func (a *attacker) skipResponse() error {
	response, err := http.ReadResponse(a.in, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// unreadResponses sends requests with a valid key and reads no response. The fast push handles one
// kind of request; net/http handles the other one, because it has a Cookie header. The broker must
// close such connections after 30 s.
func unreadResponses(t *testing.T, s *scenario) {
	const connections = 10 // of each kind
	names := strings.Repeat(`"no name",`, 999) + `"no name"`
	large := `{"messages":[{"channels":[` + names + `],"data":1}]}` // the response is ten times as long, and nothing is stored
	push := strings.Replace(s.pushHead(len(large)), "/v1/push", "/v1/push/batch", 1) + large
	var all sync.WaitGroup
	defer all.Wait()
	for _, request := range []string{push, strings.Replace(push, "Host: broker\r\n", "Host: broker\r\nCookie: none\r\n", 1)} {
		for range connections {
			a, err := s.dial(true, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			all.Go(func() {
				defer a.Close()
				for {
					if _, err := io.WriteString(a, request); errors.Is(err, os.ErrDeadlineExceeded) {
						t.Error("the broker does not close a connection whose response is not read")
						return
					} else if err != nil {
						return
					}
				}
			})
		}
	}
}

// unauthenticatedConnections opens more connections than the limits allow. They send nothing,
// little or much, and read nothing. A backend with a key and clients must still be able to connect.
func unauthenticatedConnections(t *testing.T, s *scenario) {
	const reserve = 256
	requests := []string{"", "GET /healthz HTTP/1.1\r\nX: ", probe, strings.Repeat(probe, 2000), strings.Replace(s.pushHead(10), s.Key, "forged", 1)}
	for n := range maxConnections + reserve + 150 {
		a, err := s.dial(true, net.IPv4(127, 78, byte(n/100), byte(1+n%100)))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		_ = a.SetWriteDeadline(time.Now().Add(time.Second)) // do not wait if the buffers are full
		a.sendRaw(requests[n%len(requests)])
	}
	for range 20 {
		s.Client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
		status, answer, err := s.request(ctx, http.MethodPost, "/v1/push", s.Key, strings.NewReader(`{"channel":"hall:any","data":1}`))
		cancel()
		if err != nil || status != http.StatusOK {
			t.Fatalf("the backend, on a new connection: %d %s %v", status, answer, err)
		}
	}
	if n := s.metric(s.ctx, t, `switchboard_refusals_total{what="place"}`); n == 0 {
		t.Error("the connections that were closed to make room for the backend are not counted")
	}
	s.checkService(t)
}

// tooManyTargets sends one call with a million targets. The broker must refuse it before it has
// read all of it.
func tooManyTargets(t *testing.T, s *scenario) {
	call := func(pushes int) (int, string) {
		var b strings.Builder
		for i := range pushes {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`{"clients":[`)
			for k := range 1000 {
				if k > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, `"m-%d-%d"`, i%5, k)
			}
			b.WriteString(`],"data":1,"ttl":1}`)
		}
		return s.call(s.ctx, t, http.MethodPost, "/v1/push/batch", `{"messages":[`+b.String()+`]}`)
	}
	if status, answer := call(5); status != http.StatusOK || strings.Count(answer, `"id":`) != 5000 || strings.Contains(answer, "error") {
		t.Fatalf("5,000 targets: %d %.200s", status, answer)
	}
	small := s.peak(t)
	status, answer := call(1000)
	if status != http.StatusRequestEntityTooLarge || !strings.Contains(answer, "messages[10]: up to here the call has 11000 targets, at most 10000 are allowed (limits.targets)") {
		t.Errorf("a million targets: %d %.300s", status, answer)
	}
	// The body is 10 MB, and its buffer grows by doubling.
	if large := s.peak(t); large > small+100<<20 {
		t.Errorf("the broker used %d MB for a million targets, %d for 5,000", large>>20, small>>20)
	}
}
