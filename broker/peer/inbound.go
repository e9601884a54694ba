package peer

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	deafAfter  = time.Second     // without a batch on a link in use; four heartbeats
	restDeaf   = 5 * time.Second // the same of a link at rest
	deafEvery  = time.Second     // how often Lost says so
	maxInbound = 4096
)

var (
	errClosed  = errors.New("this server is stopping")
	errTooMany = errors.New("too many peer links")
)

// inbound is what this server hears from the others, and whether it missed something.
type inbound struct {
	now func() time.Time

	mu       sync.Mutex // guards the fields below
	live     map[string]bool
	sources  map[string]*source // linked ones, by server id
	evidence bool               // something may have been missed since the last call of lost
	told     time.Time          // when lost last said so
	closed   bool

	open sync.WaitGroup // one for each source; added to under mu, while not closed
}

// source is the receiving end of one link.
type source struct {
	stop context.CancelFunc

	// All are guarded by inbound.mu.
	heard time.Time // the last batch, or the beginning
	used  time.Time // the last hint, arrived or missed
	begun bool      // a batch has come
	next  uint64    // the number that the next one should have
}

func newInbound() *inbound {
	return &inbound{now: time.Now, sources: make(map[string]*source)}
}

// setLive says which other servers should be linked. Links of those that no longer should
// are ended; a server that was never named may link already, as the registry's list takes a
// moment to get here.
func (in *inbound) setLive(live map[string]bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for id := range in.live {
		if s := in.sources[id]; s != nil && !live[id] {
			s.stop()
		}
	}
	in.live = live
}

// begin registers a link, in the place of an older one of the same server. stop must make the
// caller end it; end must be called then.
func (in *inbound) begin(from string, stop context.CancelFunc) (*source, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	old := in.sources[from]
	switch {
	case in.closed:
		return nil, errClosed
	case old != nil:
		old.stop()
	case len(in.sources) >= maxInbound:
		return nil, errTooMany
	}
	s := &source{stop: stop, heard: in.now()}
	in.sources[from] = s
	in.open.Add(1)
	return s, nil
}

// batch counts a batch of n hints, whose first has this number.
func (in *inbound) batch(s *source, number uint64, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.heard = in.now()
	if n > 0 || s.begun && number != s.next {
		s.used = s.heard
	}
	if !s.begun || number != s.next {
		in.evidence = true
	}
	s.begun, s.next = true, number+uint64(n)
}

// patience is how long s may be silent: what its sender promised with the last batch. The sender takes a link for in
// use a little longer than we do, as it counts from the same hint.
func (s *source) patience() time.Duration {
	if s.heard.Sub(s.used) < inUse-2*heartbeat {
		return deafAfter
	}
	return restDeaf
}

func (in *inbound) end(from string, s *source) {
	defer in.open.Done()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.evidence = true // what was under way went with it
	if in.sources[from] == s {
		delete(in.sources, from)
	}
}

// lost is the rule of Links.Lost.
func (in *inbound) lost() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.now()
	if !in.evidence && (now.Sub(in.told) < deafEvery || !in.deafLocked(now)) {
		return false
	}
	in.evidence, in.told = false, now
	return true
}

// deafLocked reports whether a live server cannot be heard.
func (in *inbound) deafLocked(now time.Time) bool {
	for id := range in.live {
		if s := in.sources[id]; s == nil || now.Sub(s.heard) > s.patience() {
			return true
		}
	}
	return false
}

// close ends all links, waits for them and lets none begin again.
func (in *inbound) close() {
	in.mu.Lock()
	in.closed = true
	for _, s := range in.sources {
		s.stop()
	}
	in.mu.Unlock()
	in.open.Wait()
}
