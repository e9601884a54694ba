package member

import (
	"context"
	"time"
)

// goodbyeTimeout bounds the last hints and the goodbye to the other servers.
const goodbyeTimeout = 3 * time.Second

// leaveTimeout bounds the removal from the registry at the end.
const leaveTimeout = 5 * time.Second

// Ending says how a server ends as planned.
type Ending struct {
	Drain  time.Duration // over which the clients reconnect, see session.Manager.Drain
	Unbind time.Duration // bounds the wait for the unbinding of the clients, before Unbound
	Wait   func()        // returns when no call of this server is queued or under way
	// Unbound is called after the clients are unbound. It closes the ports. Nil means no call.
	Unbound func(ctx context.Context)
}

// End closes all sessions, also those that begin from now on, and removes the bindings of this
// server from the store, while its parts still run. Without the store it ends with ctx.
func (m *Member) End(ctx context.Context, e Ending) {
	m.parts.Sessions.Drain(e.Drain)
	m.parts.Presence.StopCoalescing()
	unbindCtx, unbound := context.WithTimeout(ctx, e.Unbind)
	waitUntilDone(unbindCtx, e.Wait)
	unbound()
	if e.Unbound != nil {
		e.Unbound(ctx)
	}
	m.parts.States.Close()
	waitUntilDone(ctx, e.Wait)
	if m.parts.Sessions.Settled() { // otherwise the janitor needs the channels to find the owners of fields
		waitUntilDone(ctx, func() { m.parts.Hub.UnbindAll(ctx) })
	}
}

// Goodbye sends the last hints and a goodbye to the other servers. wait is Ending.Wait. A call to
// the store that has not ended, or whose outcome is unknown, may have stored a message without a
// hint. Then there is no goodbye, and the other servers look for the message when the links end.
func (m *Member) Goodbye(wait func()) {
	if m.parts.Links == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTimeout)
	defer cancel()
	m.parts.Links.CloseInbound() // ends calls of other servers
	waitUntilDone(ctx, wait)
	uncertain := m.parts.Pusher.Uncertain()
	if ctx.Err() != nil || m.parts.Pusher.NotifyUncertain(ctx) != nil {
		return
	}
	// The store may execute a call without an answer after it was asked for the owners: no beat has
	// shown that it had executed everything.
	if !uncertain {
		m.parts.Links.Goodbye(ctx)
	}
}

// waitUntilDone runs f and waits for it, but not longer than ctx: without the store f may not end.
func waitUntilDone(ctx context.Context, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Leave removes the server from the registry. If that fails, or if clients may still be bound, its
// lease ends and a janitor cleans up: a server that has left is never cleaned up.
func (m *Member) Leave() {
	if !m.joined.Load() {
		return
	}
	if !m.parts.Sessions.Settled() {
		m.opts.Logger.Warn().Msg("clients may still be bound to this server; the janitor will clean up")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := m.opts.Registry.Leave(ctx, m.ID()); err != nil {
		m.opts.Logger.Warn().Err(err).Msg("could not leave the registry; the janitor will clean up")
		return
	}
	m.opts.Logger.Info().Str("server", m.ID()).Msg("left")
}
