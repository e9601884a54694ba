package attack

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"testing"

	"switchboard/internal/await"
)

const (
	readers = 160
	flood   = 120 // messages of 60 KB, which none of them reads: more than a gigabyte, were they kept for each
)

// slowReaders follow a channel with much in it, and read nothing.
func slowReaders(t *testing.T, s *siege) {
	slow := s.metric(s.ctx, t, `switchboard_closes_total{reason="slow"}`)
	for i := range readers {
		e := entrances[i%len(entrances)]
		a := s.known(t, e, fmt.Sprintf("slow-%d", i))
		if tcp, ok := a.Conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4 << 10)
		}
		a.say(`{"type":"subscribe","channel":"room:flood"}`)
		a.until(t, "subscribed")
	}
	random := make([]byte, 45_000) // it must not become small where it is compressed
	_, _ = rand.Read(random)
	body := `{"channel":"room:flood","data":"` + base64.StdEncoding.EncodeToString(random) + `"}`
	for range flood {
		if status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", body); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
	}
	s.holds(t)
	await.NoError(s.ctx, t, "they are closed as slow", func() error {
		if now := s.metric(s.ctx, t, `switchboard_closes_total{reason="slow"}`); now < slow+readers {
			return fmt.Errorf("%v are", now-slow)
		}
		return nil
	})
	s.holds(t)
}
