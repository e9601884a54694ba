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
	patience = 3 * time.Minute // it only ends tests that hang
	// maxMemory is far above what the broker needs for all the attacks, and far below what any of them would make it
	// use if it were not held off.
	maxMemory = 512 << 20
	// atLeast is how many rounds the crowd must play beneath each attack, and behind it.
	atLeast = 3
)

// siege is a broker, those who depend on it, and what an attacker may know.
type siege struct {
	*victim
	*issuer
	crowd *crowd
	ctx   context.Context
	comer atomic.Int32 // counts newcomers
}

// begin starts a broker with more settings, at the top and in auth.
func begin(t *testing.T, i *issuer, more, auth string) *siege {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	if err := redisServer.Client(t).FlushAll(ctx).Err(); err != nil { // what the last crowd has not acknowledged
		t.Fatal(err)
	}
	s := &siege{ctx: ctx, issuer: i}
	s.victim = startVictim(ctx, t, i, more, auth)
	s.crowd = gather(ctx, t, s.victim, s.issuer)
	return s
}

// under attacks, again and again until the crowd has played some rounds beneath it.
func (s *siege) under(t *testing.T, attack func(*testing.T, *siege)) {
	t.Helper()
	first, _ := s.crowd.rounds()
	for {
		if s.ctx.Err() != nil {
			t.Fatal("no time is left")
		}
		attack(t, s)
		if done, sickened := s.crowd.rounds(); t.Failed() || sickened != nil || done >= first+atLeast {
			break
		}
	}
	s.holds(t)
}

// holds demands that the service is there for everybody else, now.
func (s *siege) holds(t *testing.T) {
	t.Helper()
	s.crowd.advance(s.ctx, t, atLeast)
	for _, w := range ways {
		if err := s.newcomer(w); err != nil {
			t.Fatalf("a newcomer: %v", err)
		}
	}
	if peak := s.peak(t); peak > maxMemory {
		t.Fatalf("the broker took %d MB", peak>>20)
	}
}

// newcomer comes in, is pushed something, and leaves.
func (s *siege) newcomer(w way) error {
	name := fmt.Sprintf("new-%d", s.comer.Add(1))
	m, err := join(s.ctx, s.victim, w, name, s.token(name))
	if err != nil {
		return err
	}
	defer m.conn.Close()
	status, answer, err := s.request(s.ctx, http.MethodPost, "/v1/push", s.key,
		strings.NewReader(fmt.Sprintf(`{"user":%q,"data":{"stream":"welcome","n":1}}`, name)))
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("%s was not pushed to: %d %s (%w)", name, status, answer, err)
	}
	for {
		switch p, err := m.take(s.ctx); {
		case err != nil:
			return err
		case p.Stream == "welcome": // what is said on the plaza comes before and behind it
			return nil
		}
	}
}

// end demands of the broker that it has lived, and ends like one that nobody attacked.
func (s *siege) end(t *testing.T) {
	t.Helper()
	done, sickened := s.crowd.rounds()
	if sickened != nil {
		t.Errorf("the well-behaved: %v", sickened)
	}
	t.Logf("%d rounds beneath the attacks; the broker took %d MB at most", done, s.peak(t)>>20)
	if log := s.Tail(0); strings.Contains(log, "panic") {
		t.Errorf("the broker panicked:\n%s", log)
	}
	if _, err := keytable.Check(s.ctx, redisServer.Client(t)); err != nil {
		t.Errorf("what the attackers left in Redis: %v", err)
	}
	s.crowd.leave()
	if err := s.End(s.ctx, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}
