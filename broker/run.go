package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/broker/member"
	"switchboard/broker/work"
)

const (
	// sweepInterval is how often the links are checked for lost hints. A silent link counts as broken
	// after a second, so everything is read again within 2 s.
	sweepInterval = 500 * time.Millisecond
	// comparePace is the time over which a sweep spreads its comparisons. After a second of silence
	// and sweepInterval it leaves time for reads, before the two seconds are over in which all
	// messages arrive.
	comparePace = 300 * time.Millisecond
	// slowComparePace is comparePace after the end of a link: the check comes at once, not after a
	// second of silence. It is over before the silence is reported.
	slowComparePace = 800 * time.Millisecond
	// unbindTimeout bounds the time for which the ports stay open while the clients are unbound. The
	// unbinding does not end without the store.
	unbindTimeout = 10 * time.Second
)

// Run serves until ctx ends. Then it shuts down in this order: clients, also new ones, are asked to
// reconnect to another server later; their bindings are removed from the store; calls under way
// finish; the other servers get the last hints and a goodbye; and the server leaves the registry.
// Run then returns nil. It returns an error if a port cannot be opened or a listener fails.
func (b *Broker) Run(ctx context.Context) error {
	defer b.limited.Close()
	servers, err := b.listenHTTP()
	if err != nil {
		return err
	}
	// The parts need more time than ctx: they run until the shutdown is complete.
	partsCtx, stop := context.WithCancel(context.Background())
	defer stop()
	parts, failed := errgroup.WithContext(partsCtx)
	if poller := b.listeners.poller; poller != nil {
		parts.Go(func() error {
			if err := poller.Run(partsCtx, b.opts.Listen.TCP); err != nil {
				return fmt.Errorf("tcp: %w", err)
			}
			return nil
		})
		select {
		case <-poller.Booted():
			b.listeners.addrs.TCP = poller.Addr().String()
		case <-failed.Done(): // the port is in use
			closeAll(servers)
			return parts.Wait()
		}
	}
	endLinks := b.startLinks()
	defer endLinks()
	b.startParts(partsCtx, parts, servers)
	b.opts.Logger.Info().EmbedObject(b.listeners.addrs).Int("max_connections", b.opts.Limits.Connections).Msg("listening")
	close(b.listeners.open)
	select {
	case <-ctx.Done():
		b.shutdown(servers)
	case <-failed.Done(): // without a listener its clients cannot be drained
		b.member.Leave()
		return context.Cause(failed)
	}
	stop()
	err = parts.Wait()
	b.member.Wait()
	b.hooks.Close()
	b.requests.Close()
	b.member.Goodbye(b.waitForJobs)
	endLinks()
	b.member.Leave()
	return err
}

// startLinks starts the links. They end with the returned function, after all parts that send
// hints.
func (b *Broker) startLinks() (end func()) {
	if b.links == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	var links sync.WaitGroup
	links.Go(func() { _ = b.links.Run(ctx) }) // returns nil
	return func() {
		stop()
		links.Wait()
	}
}

// startParts starts the servers and the loops of the broker.
func (b *Broker) startParts(ctx context.Context, parts *errgroup.Group, servers []*server) {
	for _, s := range servers {
		parts.Go(func() error { return s.serve(ctx) })
	}
	parts.Go(func() error { return b.listeners.web.Run(ctx) })
	if b.links != nil {
		parts.Go(func() error { return b.sweepLoop(ctx) })
	}
	for _, files := range b.certificates() {
		parts.Go(func() error { return files.Run(ctx, b.opts.Logger) })
	}
	parts.Go(func() error { return b.fetchTokenKeys(ctx) })
	parts.Go(func() error { return b.member.Run(ctx) })
	parts.Go(func() error { return b.tickLoop(ctx) })
	parts.Go(func() error { return b.extensions.Run(ctx) })
}

// shutdown drains the clients, unbinds them and ends the calls under way, while the parts still
// run.
func (b *Broker) shutdown(servers []*server) {
	b.opts.Logger.Info().Msg("shutting down")
	b.draining.Store(true)
	close(b.ending)
	drain := b.opts.Timing.Drain
	ctx, cancel := context.WithTimeout(context.Background(), drain+5*time.Second)
	defer cancel()
	// The ports stay open until the clients are unbound: the probes tell the load balancer to use
	// another server, and a client that connects anyway learns when to come back.
	b.member.End(ctx, member.Ending{
		Drain: drain, Unbind: min(drain, unbindTimeout), Wait: b.waitForJobs,
		Unbound: func(ctx context.Context) {
			for _, s := range servers {
				s.shutdown(ctx)
			}
		},
	})
}

// waitForJobs waits for the calls of the backend and the methods, and then for the store calls. A
// client that a hook admits late is unbound at once, by a store call.
func (b *Broker) waitForJobs() {
	b.hooks.Wait()
	b.requests.Wait()
	b.methodPool.Wait()
	b.durablePool.Wait()
	b.pool.Wait()
}

// tickLoop drives the timers of the parts once a second, until ctx ends.
func (b *Broker) tickLoop(ctx context.Context) error {
	return work.Every(ctx, time.Second, func() {
		b.member.Tick()
		b.metrics.tick()
	})
}

// sweepLoop compares all queues with the store whenever hints may have been lost, until ctx ends.
func (b *Broker) sweepLoop(ctx context.Context) error {
	return work.Every(ctx, sweepInterval, func() {
		if b.member.Sweep(ctx) {
			b.metrics.sweeps.Inc()
		}
	})
}
