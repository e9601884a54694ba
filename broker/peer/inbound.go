package peer

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	silentAfter     = time.Second     // an active link is silent after this time without a batch: four heartbeats
	idleSilentAfter = 5 * time.Second // an idle link is silent after this time without a batch
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
	links         map[string]*inboundLink // the links, by server id
	lossSuspected bool                    // hints may have been lost since the last call of lost
	lastReport    time.Time               // when lost last returned true
	closed        bool

	running sync.WaitGroup // counts the links; Add is called with mu held and closed false
}

// inboundLink is the receiving end of one link.
type inboundLink struct {
	stop context.CancelFunc

	// The fields below are guarded by inbound.mu.
	lastBatch time.Time // when the last batch arrived, or the link began
	lastHint  time.Time // when the last hint arrived or was found missing
	started   bool      // whether a batch has arrived
	next      uint64    // the expected number of the next batch
}

func newInbound() *inbound {
	return &inbound{now: time.Now, links: make(map[string]*inboundLink)}
}

// setLive sets the other live servers. It ends the links of servers that are no longer live. A
// server that was not live yet may already have a link, since the registry's list takes a moment
// to arrive.
func (in *inbound) setLive(live map[string]bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for id := range in.live {
		if k := in.links[id]; k != nil && !live[id] {
			k.stop()
		}
	}
	in.live = live
}

// begin registers a link. It ends an older link of the same server. stop must make the caller end
// the link and call end.
func (in *inbound) begin(from string, stop context.CancelFunc) (*inboundLink, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	old := in.links[from]
	switch {
	case in.closed:
		return nil, errClosed
	case old != nil:
		old.stop()
	case len(in.links) >= maxInbound:
		return nil, errTooMany
	}
	k := &inboundLink{stop: stop, lastBatch: in.now()}
	in.links[from] = k
	in.running.Add(1)
	return k, nil
}

// countBatch counts a batch of n hints. number is the number of the first.
func (in *inbound) countBatch(k *inboundLink, number uint64, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	k.lastBatch = in.now()
	if n > 0 || k.started && number != k.next {
		k.lastHint = k.lastBatch
	}
	if !k.started || number != k.next {
		in.lossSuspected = true
	}
	k.started, k.next = true, number+uint64(n)
}

// maxSilence returns how long the sender of k may send nothing. The sender sends quick heartbeats
// for activeTime after a hint. maxSilence expects them until two heartbeats before the end of that
// time, so that a sender that has just become idle is not reported.
func (k *inboundLink) maxSilence() time.Duration {
	if k.lastBatch.Sub(k.lastHint) < activeTime-2*heartbeat {
		return silentAfter
	}
	return idleSilentAfter
}

func (in *inbound) end(from string, k *inboundLink) {
	defer in.running.Done()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.lossSuspected = true // hints in transit are lost
	if in.links[from] == k {
		delete(in.links, from)
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
		if k := in.links[id]; k == nil || now.Sub(k.lastBatch) > k.maxSilence() {
			return true
		}
	}
	return false
}

// close ends all links and waits for them. No link begins after close.
func (in *inbound) close() {
	in.mu.Lock()
	in.closed = true
	for _, k := range in.links {
		k.stop()
	}
	in.mu.Unlock()
	in.running.Wait()
}
