package broker

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

// rebind binds all channels and clients of this server again and reads all queues. It runs in the
// background: with many clients it takes seconds, and the beats must not wait. If the server was
// declared dead, formerID is the id that it had; otherwise it is empty. A success fulfils all
// requests up to the given one.
func (b *Broker) rebind(runCtx context.Context, formerID string, request int64) {
	if b.rebinding.running.Swap(true) {
		return // a later beat finds the request pending
	}
	b.background.Go(func() {
		defer b.rebinding.running.Store(false)
		ctx, cancel := context.WithTimeout(runCtx, rebindTimeout)
		defer cancel()
		if err := b.hub.RebindAll(ctx, formerID); err != nil {
			b.log.Warn().Err(err).Msg("could not bind the channels again; a later beat tries again")
			return
		}
		b.sessions.RenewAll()
		b.presence.Resync(b.hub.ChannelNames())
		b.hub.MarkAllDirty()
		if err := b.sessions.RestoreOwners(ctx); err != nil {
			b.log.Warn().Err(err).Msg("could not store which owners of fields are connected; a later beat tries again")
			return
		}
		losses, err := b.pusher.Confirm(ctx)
		if err != nil {
			b.log.Warn().Err(err).Msg("could not check for lost messages; a later beat tries again")
			return
		}
		if losses > 0 {
			b.metrics.losses.Add(float64(losses))
			b.opts.Logger.Error().Int("queues", losses).Msg("the store has lost messages that it had acknowledged; their receivers are notified of the gap")
		}
		b.rebinding.completed.Store(request)
	})
}
