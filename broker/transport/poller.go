package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/rs/zerolog"

	"switchboard/broker/limit"
	"switchboard/broker/loop"
	"switchboard/internal/wire"
)

const (
	// turnedAway is how many connections above the limit may take time to read why.
	turnedAway = 64
	// backlogTick is how often a backed-up socket is looked at, while there is one: gnet does not tell when its
	// buffer has gone out.
	backlogTick = 25 * time.Millisecond
	// expireTick is how often the deadlines are looked at.
	expireTick = time.Second
)

// errStopped is the end of an engine that nobody stopped and that does not say why.
var errStopped = errors.New("the engine stopped by itself")

// Poller is the gnet listener: TCP lines and WebSocket on one port.
type Poller struct {
	gnet.BuiltinEventEngine
	limits Limits
	accept Accept
	logger zerolog.Logger

	lingerTime time.Duration

	free    chan *pollerLoop // loops that no gnet loop has claimed yet
	loops   []*pollerLoop
	byLoop  sync.Map // gnet.EventLoop → *pollerLoop
	reserve *Gate    // of the connections that are turned away

	lagging chan struct{} // has something when a loop that had no backlog has one

	handing sync.RWMutex  // held by what is handed over; then stop, which waits for it
	hands   chan struct{} // a place for each

	boot     sync.Once
	booted   chan struct{} // closed when the two below are set
	engine   gnet.Engine
	addr     net.Addr
	stopping atomic.Bool
}

// NewPoller returns a Poller with n loops, which take the indexes first, first+1, ….
func NewPoller(n, first int, limits Limits, accept Accept, logger zerolog.Logger) *Poller {
	p := &Poller{
		limits: limits, accept: accept, logger: logger,
		lingerTime: lingerTime,
		free:       make(chan *pollerLoop, n), booted: make(chan struct{}), reserve: NewGate(turnedAway),
		hands: make(chan struct{}, maxHandOvers), lagging: make(chan struct{}, 1),
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

// Run listens on addr until ctx ends. It returns nil then, and an error when the engine
// could not start or stopped by itself.
func (p *Poller) Run(ctx context.Context, addr string) error {
	done := make(chan error, 1)
	go func() {
		done <- gnet.Run(p, "tcp://"+addr,
			gnet.WithNumEventLoop(len(p.loops)), gnet.WithLoadBalancing(gnet.LeastConnections),
			gnet.WithReadBufferCap(64<<10), gnet.WithWriteBufferCap(16<<10),
			gnet.WithReuseAddr(true), gnet.WithTicker(true), gnet.WithLogger(gnetLogger{p.logger}))
	}()
	err := p.serve(ctx, done)
	if err != nil {
		err = fmt.Errorf("listener on %s: %w", addr, err)
	}
	for _, l := range p.loops {
		l.Detach()
	}
	return err
}

// serve looks after the loops until ctx or the engine ends; done tells of the engine.
func (p *Poller) serve(ctx context.Context, done <-chan error) error {
	expire := time.NewTicker(expireTick)
	defer expire.Stop()
	resume := time.NewTicker(backlogTick)
	defer resume.Stop()
	for resuming := true; ; {
		select {
		case err := <-done:
			return cmp.Or(err, errStopped)
		case <-ctx.Done():
			select {
			case err := <-done: // it never started
				return err
			case <-p.booted:
				return p.stop(done)
			}
		case <-p.lagging:
			if !resuming { // else the tick would be put off
				resuming = true
				resume.Reset(backlogTick)
			}
		case <-resume.C:
			resuming = false
			for _, l := range p.loops {
				if l.lagging.Load() > 0 {
					resuming = true
					l.Post(l.resume)
				}
			}
			if !resuming {
				resume.Stop() // until a loop says that it has a backlog
			}
		case <-expire.C:
			for _, l := range p.loops {
				if l.overdue.Load() > 0 {
					l.Post(l.expire)
				}
			}
		}
	}
}

// stop ends the engine. Engine.Stop itself looks only every half second whether it is over;
// with a context that has ended it gives the order and returns.
func (p *Poller) stop(done <-chan error) error {
	p.handing.Lock()
	p.stopping.Store(true)
	p.handing.Unlock()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.engine.Stop(ended)
	return <-done
}

// Booted is closed when the port is open.
func (p *Poller) Booted() <-chan struct{} { return p.booted }

// Addr is the address listened on; nil when the system does not tell. It is known
// once the port is open.
func (p *Poller) Addr() net.Addr { return p.addr }

// OnBoot keeps what is known of the engine.
func (p *Poller) OnBoot(e gnet.Engine) gnet.Action {
	p.engine = e
	p.addr = listenAddr(e)
	return gnet.None
}

// OnTick comes first when the engine knows all its loops, which OnBoot does not wait for.
func (p *Poller) OnTick() (time.Duration, gnet.Action) {
	p.boot.Do(func() { close(p.booted) })
	return 24 * time.Hour, gnet.None
}

// listenAddr asks the system, because gnet knows only what it was asked to listen on, and
// that may be port 0.
func listenAddr(e gnet.Engine) net.Addr {
	fd, err := e.Dup()
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil
	}
	defer l.Close()
	return l.Addr()
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
	if pc, ok := c.Context().(*pollerConn); ok {
		pc.takeUp(c)
		return nil, gnet.None
	}
	pc := &pollerConn{loop: p.loopOf(c.EventLoop()), conn: c}
	if p.stopping.Load() || !p.limits.Gate.Enter() {
		return p.turnAway(pc, "no room for another connection", overloadedMS)
	}
	if a := p.limits.Addresses; a != nil {
		var refusal *limit.Refusal
		if pc.address, refusal = a.Enter(addressOf(c.RemoteAddr())); refusal != nil {
			p.limits.Gate.Leave()
			return p.turnAway(pc, refusal.Detail, max(1000, refusal.Wait.Milliseconds()))
		}
	}
	c.SetContext(pc)
	pc.loop.await(pc, p.limits.Handshake)
	return nil, gnet.None
}

// turnAway closes a connection that there is no room for. The first ones may linger, like
// every connection that is closed from here.
func (p *Poller) turnAway(pc *pollerConn, detail string, afterMS int64) ([]byte, gnet.Action) {
	if !p.reserve.Enter() {
		return closing(wire.CloseOverloaded, detail, afterMS).Line(), gnet.Close
	}
	pc.conn.SetContext(pc)
	pc.reserved, pc.state = true, lines
	pc.Close(wire.CloseOverloaded, detail, afterMS)
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
	if pc.reserved {
		p.reserve.Leave()
	} else {
		p.limits.Gate.Leave()
		p.limits.Addresses.Leave(pc.address)
	}
	return gnet.None
}

// gnetLogger passes gnet's own log on. It is process-wide in gnet, so the last Poller's counts.
type gnetLogger struct{ zerolog.Logger }

func (g gnetLogger) Debugf(f string, a ...any) { g.Debug().Str("from", "gnet").Msgf(f, a...) }
func (g gnetLogger) Infof(f string, a ...any)  { g.Debug().Str("from", "gnet").Msgf(f, a...) }
func (g gnetLogger) Warnf(f string, a ...any)  { g.Warn().Str("from", "gnet").Msgf(f, a...) }
func (g gnetLogger) Errorf(f string, a ...any) { g.Error().Str("from", "gnet").Msgf(f, a...) }
func (g gnetLogger) Fatalf(f string, a ...any) { g.Error().Str("from", "gnet").Msgf(f, a...) }
