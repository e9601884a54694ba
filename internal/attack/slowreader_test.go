//go:build long

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
	slowReaderCount = 160
	floodMessages   = 120 // messages of 60 KB for each reader: more than 1 GB in all
)

// slowReaders subscribes clients to a channel with much traffic. They read nothing.
func slowReaders(t *testing.T, s *scenario) {
	before := s.metric(s.ctx, t, `switchboard_closes_total{reason="slow"}`)
	for i := range slowReaderCount {
		e := endpoints[i%len(endpoints)]
		a := s.connectUser(t, e, fmt.Sprintf("slow-%d", i))
		if tcp, ok := a.Conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4 << 10)
		}
		a.send(`{"type":"subscribe","channel":"hall:flood"}`)
		a.waitFor(t, "subscribed")
	}
	random := make([]byte, 45_000) // must not be compressible
	_, _ = rand.Read(random)
	body := `{"channel":"hall:flood","data":"` + base64.StdEncoding.EncodeToString(random) + `"}`
	for range floodMessages {
		if status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", body); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
	}
	s.checkService(t)
	await.NoError(s.ctx, t, "all are closed as slow", func() error {
		if now := s.metric(s.ctx, t, `switchboard_closes_total{reason="slow"}`); now < before+slowReaderCount {
			return fmt.Errorf("%v are closed", now-before)
		}
		return nil
	})
	s.checkService(t)
}
