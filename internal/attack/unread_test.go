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

// pipelinedProbes are asked for by the thousand, without waiting for an answer: few are answered. A
// health check that keeps its connection, and waits, is answered as often as it asks.
func pipelinedProbes(t *testing.T, s *siege) {
	for _, request := range []string{probe, "GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n", strings.Replace(s.pushHead(0), s.key, "forged", 1)} {
		a, err := s.dial(true, nil)
		if err != nil {
			t.Fatal(err)
		}
		go a.raw(strings.Repeat(request, 5000))
		answers := 0
		for ; answers < 5000; answers++ {
			if err := a.skipAnswer(); err != nil {
				break
			}
		}
		_ = a.Close()
		if answers == 0 || answers > 3 {
			t.Errorf("%.20q is answered %d times", request, answers)
		}
	}
	check, err := s.dial(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer check.Close()
	for n := range 100 {
		check.raw(probe)
		if err := check.skipAnswer(); err != nil {
			t.Fatalf("health check %d on one connection: %v", n, err)
		}
	}
}

// skipAnswer reads an HTTP answer.
func (a *assailant) skipAnswer() error {
	response, err := http.ReadResponse(a.in, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// unreadAnswers are those to a backend that has a key and never reads, over net/http and without
// it. The broker gives it up after half a minute; before, such a connection kept its place for
// ever.
func unreadAnswers(t *testing.T, s *siege) {
	const greed = 10 // of each kind
	names := strings.Repeat(`"no name",`, 999) + `"no name"`
	large := `{"messages":[{"channels":[` + names + `],"data":1}]}` // its answer is ten times as long, and nothing is stored
	push := strings.Replace(s.pushHead(len(large)), "/v1/push", "/v1/push/batch", 1) + large
	var all sync.WaitGroup
	defer all.Wait()
	for _, request := range []string{push, strings.Replace(push, "Host: broker\r\n", "Host: broker\r\nCookie: none\r\n", 1)} {
		for range greed {
			a, err := s.dial(true, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			all.Go(func() {
				defer a.Close()
				for {
					if _, err := io.WriteString(a, request); errors.Is(err, os.ErrDeadlineExceeded) {
						t.Error("the broker waits without end for an answer to be read")
						return
					} else if err != nil {
						return
					}
				}
			})
		}
	}
}

// strangersEverywhere take more places than there are, and say nothing, or little, or much, and
// read nothing. A backend that shows its key gets in all the same, at once, and so do clients.
func strangersEverywhere(t *testing.T, s *siege) {
	const reserve = 256
	said := []string{"", "GET /healthz HTTP/1.1\r\nX: ", probe, strings.Repeat(probe, 2000), strings.Replace(s.pushHead(10), s.key, "forged", 1)}
	for n := range places + reserve + 150 {
		a, err := s.dial(true, net.IPv4(127, 78, byte(n/100), byte(1+n%100)))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		_ = a.SetWriteDeadline(time.Now().Add(time.Second)) // what does not fit is not said
		a.raw(said[n%len(said)])
	}
	for range 20 {
		s.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
		status, answer, err := s.request(ctx, http.MethodPost, "/v1/push", s.key, strings.NewReader(`{"channel":"room:any","data":1}`))
		cancel()
		if err != nil || status != http.StatusOK {
			t.Fatalf("the backend, on a new connection: %d %s %v", status, answer, err)
		}
	}
	if n := s.metric(s.ctx, t, `switchboard_refusals_total{what="place"}`); n == 0 {
		t.Error("connections that gave way are not counted")
	}
	s.holds(t)
}

// millionTargets asks for as much as fits into a call. The broker has to refuse it without reading
// it all.
func millionTargets(t *testing.T, s *siege) {
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
	// The body itself is 10 MB, in a buffer that doubles.
	if large := s.peak(t); large > small+100<<20 {
		t.Errorf("the broker took %d MB for a million targets, %d for 5,000", large>>20, small>>20)
	}
}
