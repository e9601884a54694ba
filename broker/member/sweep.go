package member

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// doubts are what the next Sweep looks into, besides what the links report.
type doubts struct {
	mu   sync.Mutex // guards the field below
	more []string   // server ids

	sweeping chan struct{} // one slot, held during a Sweep
	slow     atomic.Bool   // a slow comparison is under way

	compare func(ctx context.Context, doubts []string, pace time.Duration) // compareAll, but in tests
}

// addUnlisted notes that the store no longer lists servers that were live. Until now they may have
// stored something without a hint, and a janitor has ended their fields. So everything is looked at
// once more, unless the server has said goodbye and no hint of it is missing.
func (m *Member) addUnlisted(servers []string) {
	if m.parts.Links == nil {
		return
	}
	for _, server := range servers {
		if m.parts.Links.Unlisted(server) {
			m.addDoubt(server)
		}
	}
}

// addDoubt adds a server in doubt that the links do not report.
func (m *Member) addDoubt(server string) {
	m.doubts.mu.Lock()
	defer m.doubts.mu.Unlock()
	m.doubts.more = append(m.doubts.more, server)
}

// takeDoubts returns the servers in doubt since the last call, and whether one of them is urgent,
// see peer.Links.Doubts.
func (m *Member) takeDoubts() (list []string, urgent bool) {
	if m.parts.Links == nil {
		return nil, false
	}
	m.doubts.mu.Lock()
	defer m.doubts.mu.Unlock()
	list, urgent = m.parts.Links.Doubts()
	list = append(m.doubts.more, list...)
	m.doubts.more = nil
	return list, urgent
}

// Sweep compares all queues with the store if hints may have been lost since the last call, and the
// views with the servers of these hints. It reads what differs. It reports whether there was a
// doubt, and returns when everything is compared: at most one Sweep compares at a time. If nothing
// is urgent, it compares in the background, so that pushes hardly notice it. What becomes urgent
// meanwhile does not wait for that.
func (m *Member) Sweep(ctx context.Context) bool {
	doubts, urgent := m.takeDoubts()
	if len(doubts) == 0 {
		return false
	}
	if !urgent && m.opts.SlowPace > 0 && m.doubts.slow.CompareAndSwap(false, true) {
		m.background.Go(func() {
			defer m.doubts.slow.Store(false)
			m.doubts.compare(ctx, doubts, m.opts.SlowPace)
		})
		return true
	}
	m.doubts.sweeping <- struct{}{}
	defer func() { <-m.doubts.sweeping }()
	m.doubts.compare(ctx, doubts, m.opts.Pace)
	return true
}

// compareAll compares all queues, and the views with the servers in doubt.
func (m *Member) compareAll(ctx context.Context, doubts []string, pace time.Duration) {
	p := &m.parts
	servers := m.others(doubts)
	m.compare(ctx, pace, p.Hub.Compare, p.Sessions.Compare, func(ctx context.Context, pace time.Duration) error {
		return p.Presence.Compare(ctx, servers, pace)
	})
}

// others returns the servers in doubt except this one, for [presence.Presence.Compare]. It is never
// nil, which would mean all servers.
func (m *Member) others(doubts []string) []string {
	self := m.ID()
	return slices.DeleteFunc(slices.Clone(doubts), func(server string) bool { return server == self })
}

// compare compares parts with the store at the same time. The parts repeat what fails.
func (m *Member) compare(ctx context.Context, pace time.Duration, parts ...func(ctx context.Context, pace time.Duration) error) {
	var running sync.WaitGroup
	for _, compare := range parts {
		running.Go(func() {
			if err := compare(ctx, pace); err != nil {
				m.opts.Log.Warn().Err(err).Msg("not everything could be compared with the store; the rest is compared again")
			}
		})
	}
	running.Wait()
}

// compareStates compares the channels with states in the background if a janitor may have ended
// fields of them. It has no links, so it sends no hints.
func (m *Member) compareStates(runCtx context.Context) {
	if m.statesEnded.Swap(false) {
		m.background.Go(func() { m.compare(runCtx, m.opts.Pace, m.parts.Hub.CompareStates) })
	}
}
