package peer

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	silentAfter     = time.Second     // an active link without a batch for so long is silent; four heartbeats
	idleSilentAfter = 5 * time.Second // the same for an idle link
	reportInterval  = time.Second     // how often Lost reports a silent link
	maxInbound      = 4096
)

var (
	errClosed  = errors.New("this server is stopping")
	errTooMany = errors.New("too many peer links")
)

// inbound is the state of the links from other servers, and whether hints may be lost.
type inbound struct {
	now func() time.Time

	mu            sync.Mutex // guards the fields below
	live          map[string]bool
	sources       map[string]*source // the links, by server id
	lossSuspected bool               // hints may have been lost since the last call of lost
	lastReport    time.Time          // when lost last returned true
	closed        bool

	running sync.WaitGroup // counts the sources; Add is called with mu held and closed false
}

// source is the receiving end of one link.
type source struct {
	stop context.CancelFunc

	// All are guarded by inbound.mu.
	lastBatch time.Time // when the last batch arrived, or the link began
	lastHint  time.Time // when the last hint arrived or was found missing
	started   bool      // whether a batch has arrived
	next      uint64    // the expected number of the next batch
}

func newInbound() *inbound {
	return &inbound{now: time.Now, sources: make(map[string]*source)}
}

// setLive sets the other live servers. It ends the links of servers that are no longer live. A
// server that was not live yet may already have a link, since the registry's list takes a moment
// to arrive.
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

// begin registers a link. It ends an older link of the same server. stop must make the caller end
// the link and call end.
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
	s := &source{stop: stop, lastBatch: in.now()}
	in.sources[from] = s
	in.running.Add(1)
	return s, nil
}

// batch counts a batch of n hints. number is that of the first.
func (in *inbound) batch(s *source, number uint64, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.lastBatch = in.now()
	if n > 0 || s.started && number != s.next {
		s.lastHint = s.lastBatch
	}
	if !s.started || number != s.next {
		in.lossSuspected = true
	}
	s.started, s.next = true, number+uint64(n)
}

// maxSilence returns how long the sender of s may send nothing. It counts the link as active for
// two heartbeats less than the sender does, so that a sender that already beats slowly is not
// reported.
func (s *source) maxSilence() time.Duration {
	if s.lastBatch.Sub(s.lastHint) < activeTime-2*heartbeat {
		return silentAfter
	}
	return idleSilentAfter
}

func (in *inbound) end(from string, s *source) {
	defer in.running.Done()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.lossSuspected = true // hints in transit are lost
	if in.sources[from] == s {
		delete(in.sources, from)
	}
}

// lost implements Links.Lost.
func (in *inbound) lost() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.now()
	if !in.lossSuspected && (now.Sub(in.lastReport) < reportInterval || !in.anySilentLocked(now)) {
		return false
	}
	in.lossSuspected, in.lastReport = false, now
	return true
}

// anySilentLocked reports whether a live server has no link, or a silent one.
func (in *inbound) anySilentLocked(now time.Time) bool {
	for id := range in.live {
		if s := in.sources[id]; s == nil || now.Sub(s.lastBatch) > s.maxSilence() {
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
	in.running.Wait()
}
