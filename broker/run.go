package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/broker/fastpush"
)

// sweepTick is how often the links are asked whether hints may have been lost. With the
// second that a silent link is given, everything is read again within the sweep's 2 s.
const sweepTick = 500 * time.Millisecond

// unbindTime is how long a broker that goes down keeps its ports open, at most: with the store away
// there is no end to the unbinding.
const unbindTime = 10 * time.Second

// Run serves until ctx ends, then goes down in order: the clients are told when to come back
// elsewhere, new ones too, their bindings are taken out of the store, calls under way
// end, and the server leaves the registry. It returns nil then, and an error when a
// port could not be opened or a listener failed.
func (b *Broker) Run(ctx context.Context) error {
	defer b.limited.Close()
	servers, err := b.listen()
	if err != nil {
		return err
	}
	// The parts outlive ctx by the time that going down takes.
	parts, stop := context.WithCancel(context.Background())
	defer stop()
	group, failed := errgroup.WithContext(parts)
	if b.poller != nil {
		group.Go(func() error {
			if err := b.poller.Run(parts, b.opts.TCP); err != nil {
				return fmt.Errorf("tcp: %w", err)
			}
			return nil
		})
		select {
		case <-b.poller.Booted():
			b.addrs.TCP = b.poller.Addr().String()
		case <-failed.Done(): // the port is taken
			for _, s := range servers {
				_ = s.listener.Close()
			}
			return group.Wait()
		}
	}
	for _, s := range servers {
		group.Go(func() error { return s.serve(parts) })
	}
	group.Go(func() error { return b.web.Run(parts) })
	if b.peers != nil {
		group.Go(func() error { return b.peers.Run(parts) })
		group.Go(func() error { return b.sweepLoop(parts) })
	}
	for _, files := range b.certificates() {
		group.Go(func() error { return files.Run(parts, b.opts.Logger) })
	}
	group.Go(func() error { return b.fetchKeys(parts) })
	group.Go(func() error { return b.beatLoop(parts) })
	group.Go(func() error { return b.tickLoop(parts) })
	b.opts.Logger.Info().EmbedObject(b.addrs).Int("max_connections", b.opts.MaxConnections).Msg("listening")
	close(b.serving)
	select {
	case <-ctx.Done():
		b.goDown(servers)
	case <-failed.Done(): // a listener is gone: what hangs on it cannot be ended in order
		b.leave()
		return context.Cause(failed)
	}
	stop()
	err = group.Wait()
	b.background.Wait()
	if b.hooks != nil {
		b.hooks.Close()
	}
	b.leave()
	return err
}

// goDown is the orderly end, while the parts still run.
func (b *Broker) goDown(servers []*server) {
	b.opts.Logger.Info().Msg("going down")
	b.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), b.opts.DrainTime+5*time.Second)
	defer cancel()
	b.sessions.Drain(b.opts.DrainTime)
	b.presence.StopCoalescing()
	// Until their bindings are out of the store the ports stay open: a balancer hears from the probes
	// that it should go elsewhere, and a client that comes all the same hears when.
	unbinding, enough := context.WithTimeout(ctx, min(b.opts.DrainTime, unbindTime))
	within(unbinding, b.finish)
	enough()
	for _, s := range servers {
		s.shutdown(ctx)
	}
	within(ctx, b.finish)
	within(ctx, func() { b.hub.UnbindAll(ctx) })
}

// finish waits for the jobs of both pools: who is let in late is unbound at once.
func (b *Broker) finish() {
	if b.asking != nil {
		b.asking.Wait()
	}
	b.pool.Wait()
}

// within waits for f, but not longer than ctx: with the store away there is no end to it.
func within(ctx context.Context, f func()) {
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

// leave takes the server out of the registry. When that fails its lease runs out, and a
// janitor cleans up.
func (b *Broker) leave() {
	if !b.joined.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := b.opts.Registry.Leave(ctx, b.serverID()); err != nil {
		b.opts.Logger.Warn().Err(err).Msg("could not leave; the janitor will clean up")
		return
	}
	b.opts.Logger.Info().Str("server", b.serverID()).Msg("left")
}

func (b *Broker) tickLoop(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			b.hub.Tick()
			b.sessions.Tick()
			b.presence.Tick()
		}
	}
}

// sweepLoop has everything read again whenever hints may have been lost.
func (b *Broker) sweepLoop(ctx context.Context) error {
	tick := time.NewTicker(sweepTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if b.peers.Lost() {
				b.metrics.sweeps.Inc()
				b.hub.MarkAllDirty()
				b.sessions.MarkAllDirty()
				b.presence.MarkAllDirty()
			}
		}
	}
}

// server is one HTTP listener.
type server struct {
	http     http.Server
	listener net.Listener
	taken    *fastpush.Server // nil for none
	brief    bool             // calls under way are cut off at the end
}

func (s *server) serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = s.http.Close() })()
	if s.taken != nil {
		var returned sync.WaitGroup
		returned.Go(func() { _ = s.http.Serve(s.taken.Returned()) }) // ends with the other, or with Close
		defer returned.Wait()
		defer s.taken.Close()
	}
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the HTTP listener on %s ended: %w", s.listener.Addr(), err)
	}
	return nil
}

// shutdown stops accepting and waits for the calls under way. What was taken over comes first: a part of it may come back.
func (s *server) shutdown(ctx context.Context) {
	if s.taken != nil {
		s.taken.Shutdown(ctx)
	}
	if s.brief || s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
}
