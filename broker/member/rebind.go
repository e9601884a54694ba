package member

import (
	"context"
	"sync/atomic"
	"time"
)

// rebindTimeout bounds one rebind.
const rebindTimeout = 30 * time.Second

// rebinding counts the reasons to bind everything again: the store may have lost the bindings of
// this server. The first request is made at the start, when nothing is bound yet.
type rebinding struct {
	requested atomic.Int64 // number of requests
	completed atomic.Int64 // requests up to this number are fulfilled
	running   atomic.Bool
}

// request asks for a rebind and returns the number of the request.
func (r *rebinding) request() int64 { return r.requested.Add(1) }

// pending returns the number of the last request, and whether it is still unfulfilled.
func (r *rebinding) pending() (request int64, pending bool) {
	request = r.requested.Load()
	return request, r.completed.Load() != request
}

// Rebind has the next beat bind everything again: the store may have lost the bindings of this
// server.
func (m *Member) Rebind() { m.rebinding.request() }

// Bound reports whether everything is bound, as far as this server knows.
func (m *Member) Bound() bool {
	_, pending := m.rebinding.pending()
	return !pending
}

// Wait waits for a rebind that runs.
func (m *Member) Wait() { m.background.Wait() }

// rebind binds all channels and clients of this server again and reads all queues. It runs in the
// background: with many clients it takes seconds, and the beats must not wait. If the server was
// declared dead, formerID is the id that it had; otherwise it is empty. A success fulfils all
// requests up to the given one.
func (m *Member) rebind(runCtx context.Context, formerID string, request int64) {
	if m.rebinding.running.Swap(true) {
		return // a later beat finds the request pending
	}
	m.background.Go(func() {
		defer m.rebinding.running.Store(false)
		if m.opts.Rebinding != nil {
			m.opts.Rebinding()
		}
		ctx, cancel := context.WithTimeout(runCtx, rebindTimeout)
		defer cancel()
		if m.rebindAll(ctx, formerID) {
			m.rebinding.completed.Store(request)
		}
	})
}

// rebindAll does what rebind says, and reports whether it succeeded.
func (m *Member) rebindAll(ctx context.Context, formerID string) bool {
	p := m.parts
	if err := p.Hub.RebindAll(ctx, formerID); err != nil {
		m.opts.Log.Warn().Err(err).Msg("could not bind the channels again; a later beat tries again")
		return false
	}
	p.Sessions.RenewAll()
	p.Presence.Resync(p.Hub.ChannelNames())
	p.Hub.MarkAllDirty()
	if err := p.Sessions.RestoreOwners(ctx); err != nil {
		m.opts.Log.Warn().Err(err).Msg("could not store which owners of fields are connected; a later beat tries again")
		return false
	}
	losses, err := p.Pusher.Confirm(ctx)
	if err != nil {
		m.opts.Log.Warn().Err(err).Msg("could not check for lost messages; a later beat tries again")
		return false
	}
	if losses > 0 {
		m.opts.Logger.Error().Int("queues", losses).Msg("the store has lost messages that it had acknowledged; their receivers are notified of the gap")
		m.opts.Lost(losses)
	}
	return true
}
