//go:build long

package attack

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/keytable"
)

const (
	testTimeout = 3 * time.Minute // only hanging tests reach it
	// maxMemory bounds the memory of the broker, in bytes. All attacks need much less, and a
	// successful attack needs much more.
	maxMemory = 512 << 20
	// minRounds is the number of rounds of traffic during each attack, and again after it.
	minRounds = 3
)

// A scenario is a broker with its honest clients, and the keys and addresses that attackers use.
type scenario struct {
	*broker
	*issuer
	traffic     *traffic
	ctx         context.Context
	clientCount atomic.Int32 // number of generated client names
}

// newScenario starts a broker and its traffic. more and auth are additional settings at the top
// level and in section auth.
func newScenario(t *testing.T, i *issuer, more, auth string) *scenario {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	if err := redisServer.Client(t).FlushAll(ctx).Err(); err != nil { // unacknowledged messages of the previous scenario
		t.Fatal(err)
	}
	s := &scenario{ctx: ctx, issuer: i}
	s.broker = startBroker(ctx, t, i, more, auth)
	s.traffic = startTraffic(ctx, t, s.broker, s.issuer)
	return s
}

// attackRepeatedly repeats an attack until minRounds rounds of traffic are complete.
func (s *scenario) attackRepeatedly(t *testing.T, attack func(*testing.T, *scenario)) {
	t.Helper()
	first, _ := s.traffic.rounds()
	for {
		if s.ctx.Err() != nil {
			t.Fatal("timeout")
		}
		attack(t, s)
		if done, err := s.traffic.rounds(); t.Failed() || err != nil || done >= first+minRounds {
			break
		}
	}
	s.checkService(t)
}

// checkService checks that the connected honest clients and new ones are served, and that the
// memory of the broker is bounded.
func (s *scenario) checkService(t *testing.T) {
	t.Helper()
	s.traffic.waitRounds(s.ctx, t, minRounds)
	for _, w := range transports {
		if err := s.checkNewClient(w); err != nil {
			t.Fatalf("new client: %v", err)
		}
	}
	if peak := s.peak(t); peak > maxMemory {
		t.Fatalf("the broker uses %d MB", peak>>20)
	}
}

// checkNewClient connects a client, pushes a message to it, and disconnects it.
func (s *scenario) checkNewClient(w transport) error {
	name := fmt.Sprintf("new-%d", s.clientCount.Add(1))
	h, err := connectHonest(s.ctx, s.broker, w, name, s.token(name))
	if err != nil {
		return err
	}
	defer h.conn.Close()
	status, answer, err := s.request(s.ctx, http.MethodPost, "/v1/push", s.Key,
		strings.NewReader(fmt.Sprintf(`{"user":%q,"data":{"stream":"welcome","n":1}}`, name)))
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("push to %s: %d %s (%w)", name, status, answer, err)
	}
	for {
		switch p, err := h.receive(s.ctx); {
		case err != nil:
			return err
		case p.Stream == "welcome": // messages of the shared channel come before it
			return nil
		}
	}
}

// finish checks that the broker has neither failed nor panicked, and that it stops cleanly.
func (s *scenario) finish(t *testing.T) {
	t.Helper()
	done, err := s.traffic.rounds()
	if err != nil {
		t.Errorf("honest clients: %v", err)
	}
	t.Logf("%d rounds during the attacks; the broker used at most %d MB", done, s.peak(t)>>20)
	if log := s.Tail(0); strings.Contains(log, "panic") {
		t.Errorf("the broker panicked:\n%s", log)
	}
	if _, err := keytable.Check(s.ctx, redisServer.Client(t)); err != nil {
		t.Errorf("keys that the attackers left in Redis: %v", err)
	}
	s.traffic.stop()
	if err := s.End(s.ctx, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}
