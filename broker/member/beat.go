package member

import (
	"context"
	"time"
)

// Run keeps the lease until ctx ends.
func (m *Member) Run(ctx context.Context) error {
	tick := time.NewTicker(m.opts.Beat)
	defer tick.Stop()
	for {
		m.Beat(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case of := <-m.opts.Changed:
			m.opts.Logger.Warn().Msg("the store restarted or failed over; this server compares its bindings with it")
			m.Changed(&of)
		}
	}
}

// Beat renews the lease, and reads which servers have started or ended and the revoked tokens. If
// the store may have lost something, Beat then has it compared and bound again. Unless messages may
// be lost, it notifies the owners of messages that may have been stored without a hint. runCtx ends
// with the broker.
func (m *Member) Beat(runCtx context.Context) {
	ctx, cancel := context.WithTimeout(runCtx, 2*m.opts.Beat)
	defer cancel()
	m.work.beatBegins()
	joined, start := m.joined.Load(), m.leaseStart.Load()
	formerID, err := m.renew(ctx)
	switch renewed := m.leaseStart.Load() != start; {
	case formerID != "":
		m.work.renamed(formerID)
	case joined && renewed && time.Since(m.started)-time.Duration(start) >= m.lease:
		m.Rebind() // the lease had ended: another server may have begun to clean up
	}
	m.compareStates(runCtx)
	if err == nil {
		err = m.checkRevoked(ctx)
	}
	if runCtx.Err() != nil {
		return
	}
	m.beatEnded(err)
	if err != nil {
		return
	}
	m.work.beatSucceeded()
	lost := m.work.mayHaveLost()
	if m.rebind(runCtx); lost {
		return
	}
	if err := m.parts.Pusher.NotifyUncertain(ctx); err != nil {
		m.opts.Log.Warn().Err(err).Msg("could not notify the owners of messages that may have been stored; the next beat tries again")
	}
}

// Tick does the periodic work of the parts. It must be called once a second.
func (m *Member) Tick() {
	m.parts.Hub.Tick()
	m.parts.States.Tick()
	m.parts.Sessions.Tick()
	m.parts.Presence.Tick()
}

// beatEnded records the outcome of a beat and logs the first of several failures.
func (m *Member) beatEnded(err error) {
	if err == nil {
		m.failing.Store(false)
		m.lastBeat.Store(time.Since(m.started).Nanoseconds())
	} else if !m.failing.Swap(true) {
		m.opts.Logger.Error().Err(err).Msg("the store cannot be reached; pushes are refused until it is back")
	}
}

// checkRevoked checks the tokens and the subscriptions of the users whose tokens were revoked, or
// whom the backend has subscribed, since the last beat: the call to this server may have been lost.
func (m *Member) checkRevoked(ctx context.Context) error {
	for {
		users, next, more, err := m.opts.Registry.RevokedSince(ctx, m.revokedSince)
		if err != nil {
			return err
		}
		m.revokedSince = next
		m.parts.Sessions.CheckTokens(users)
		if !more {
			return nil
		}
	}
}
