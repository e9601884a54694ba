package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/rs/zerolog"

	"switchboard/broker/loop"
)

const (
	// handshakeTime is how long a connection may take to its first line or to the end of its
	// WebSocket handshake.
	handshakeTime = 10 * time.Second
	// lingerTime is how long a closed connection may take to read why.
	lingerTime = 3 * time.Second
	// backlogTick is how often a backed-up socket is looked at: gnet does not tell when its
	// buffer has gone out.
	backlogTick = 25 * time.Millisecond
)

// Poller is the gnet listener: TCP lines and WebSocket on one port.
type Poller struct {
	gnet.BuiltinEventEngine
	limits Limits
	accept Accept
	logger zerolog.Logger

	free   chan *pollerLoop // loops that no gnet loop has claimed yet
	loops  []*pollerLoop
	byLoop sync.Map // gnet.EventLoop → *pollerLoop

	engine   gnet.Engine
	booted   chan struct{}
	stopping atomic.Bool
}

// pollerLoop is one gnet loop and the connections on it. All but the counters belong to
// the loop.
type pollerLoop struct {
	*loop.Loop
	poller *Poller

	waiting map[*pollerConn]time.Time // in handshake or lingering: when to give up
	backlog map[*pollerConn]struct{}
	lagging atomic.Int32 // len(backlog)
	overdue atomic.Int32 // len(waiting)
}

// NewPoller returns a Poller with n loops, which take the indexes first, first+1, ….
func NewPoller(n, first int, limits Limits, accept Accept, logger zerolog.Logger) *Poller {
	p := &Poller{
		limits: limits, accept: accept, logger: logger,
		free: make(chan *pollerLoop, n), booted: make(chan struct{}),
	}
	for i := range n {
		l := &pollerLoop{
			Loop: loop.New(first + i), poller: p,
			waiting: make(map[*pollerConn]time.Time),
			backlog: make(map[*pollerConn]struct{}),
		}
		p.loops = append(p.loops, l)
		p.free <- l
	}
	return p
}

// Loops are the loops, also before Run.
func (p *Poller) Loops() []*loop.Loop {
	list := make([]*loop.Loop, len(p.loops))
	for i, l := range p.loops {
		list[i] = l.Loop
	}
	return list
}

// attach makes g the host of the mailbox. A gnet loop shows itself with its first connection;
// until then tasks run without it.
func (l *pollerLoop) attach(g gnet.EventLoop) {
	l.Attach(func(run func()) {
		// An error means that the engine has ended: Detach makes up for the run.
		_ = g.Execute(context.Background(), gnet.RunnableFunc(func(context.Context) error {
			run()
			return nil
		}))
	})
}

// Run listens on addr until ctx ends. It returns nil then, and an error when the engine
// could not start or stopped by itself.
func (p *Poller) Run(ctx context.Context, addr string) error {
	done := make(chan error, 1)
	go func() {
		done <- gnet.Run(p, "tcp://"+addr,
			gnet.WithNumEventLoop(len(p.loops)), gnet.WithLoadBalancing(gnet.LeastConnections),
			gnet.WithReadBufferCap(64<<10), gnet.WithWriteBufferCap(16<<10),
			gnet.WithReuseAddr(true), gnet.WithLogger(gnetLogger{p.logger}))
	}()
	ticker := time.NewTicker(backlogTick)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case err := <-done:
			p.detach()
			return errors.Join(fmt.Errorf("the TCP listener on %s ended", addr), err)
		case <-ctx.Done():
			<-p.booted
			p.stopping.Store(true)
			stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := p.engine.Stop(stop); err != nil {
				return fmt.Errorf("stop the TCP listener: %w", err)
			}
			<-done
			p.detach()
			return nil
		case <-ticker.C:
			for _, l := range p.loops {
				if l.lagging.Load() > 0 {
					l.Post(l.resume)
				}
				if n%40 == 0 && l.overdue.Load() > 0 { // about once a second
					l.Post(l.expire)
				}
			}
		}
	}
}

func (p *Poller) detach() {
	for _, l := range p.loops {
		l.Detach()
	}
}

// Booted is closed when the port is open.
func (p *Poller) Booted() <-chan struct{} { return p.booted }

// OnBoot keeps the engine, for its end.
func (p *Poller) OnBoot(e gnet.Engine) gnet.Action {
	p.engine = e
	close(p.booted)
	return gnet.None
}

// loopOf is our loop for gnet's.
func (p *Poller) loopOf(g gnet.EventLoop) *pollerLoop {
	if l, ok := p.byLoop.Load(g); ok {
		return l.(*pollerLoop)
	}
	l := <-p.free
	l.attach(g)
	p.byLoop.Store(g, l)
	return l
}

// OnOpen takes a new connection in, or turns it away above the limit.
func (p *Poller) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	if p.stopping.Load() || !p.limits.Gate.Enter() {
		return closing("overloaded", "no room for another connection", overloadedMS).Line(), gnet.Close
	}
	l := p.loopOf(c.EventLoop())
	pc := &pollerConn{loop: l, conn: c}
	c.SetContext(pc)
	l.await(pc, handshakeTime)
	return nil, gnet.None
}

// OnTraffic hands on what came.
func (p *Poller) OnTraffic(c gnet.Conn) gnet.Action {
	pc, ok := c.Context().(*pollerConn)
	if !ok {
		return gnet.Close
	}
	pc.read()
	return gnet.None
}

// OnClose forgets the connection. From here on the descriptor may be somebody else's.
func (p *Poller) OnClose(c gnet.Conn, _ error) gnet.Action {
	pc, ok := c.Context().(*pollerConn)
	if !ok {
		return gnet.None
	}
	pc.gone()
	p.limits.Gate.Leave()
	return gnet.None
}

// resume tells the sessions whose backlog is gone.
func (l *pollerLoop) resume() {
	for pc := range l.backlog {
		if pc.conn == nil || pc.conn.OutboundBuffered() == 0 {
			delete(l.backlog, pc)
			if pc.conn != nil && pc.to != nil {
				pc.to.Writable()
			}
		}
	}
	l.lagging.Store(int32(len(l.backlog)))
}

// await gives pc until d from now to get out of its handshake, or out altogether.
func (l *pollerLoop) await(pc *pollerConn, d time.Duration) {
	l.waiting[pc] = time.Now().Add(d)
	l.overdue.Store(int32(len(l.waiting)))
}

func (l *pollerLoop) awaitNoMore(pc *pollerConn) {
	delete(l.waiting, pc)
	l.overdue.Store(int32(len(l.waiting)))
}

// expire ends the connections whose time is up.
func (l *pollerLoop) expire() {
	now := time.Now()
	for pc, deadline := range l.waiting {
		if now.After(deadline) {
			pc.drop()
		}
	}
}

// gnetLogger passes gnet's own log on. It is process-wide in gnet, so the last Poller's counts.
type gnetLogger struct{ zerolog.Logger }

func (g gnetLogger) Debugf(f string, a ...any) { g.Debug().Msgf(f, a...) }
func (g gnetLogger) Infof(f string, a ...any)  { g.Debug().Msgf(f, a...) }
func (g gnetLogger) Warnf(f string, a ...any)  { g.Warn().Msgf(f, a...) }
func (g gnetLogger) Errorf(f string, a ...any) { g.Error().Msgf(f, a...) }
func (g gnetLogger) Fatalf(f string, a ...any) { g.Error().Msgf(f, a...) }

// addrString is the remote address while the connection is open.
func addrString(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}
