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

	"switchboard/broker/dialect"
	"switchboard/broker/limit"
	"switchboard/broker/loop"
	"switchboard/internal/linger"
	"switchboard/internal/wire"
)

const (
	// maxRefused is how many refused connections may stay open at once, so that their clients can
	// read the reason.
	maxRefused = 64
	// backlogTick is how often the Poller checks backed-up sockets, while there are any: gnet does
	// not report that its buffer is empty.
	backlogTick = 25 * time.Millisecond
	// expireTick is how often the Poller checks the deadlines.
	expireTick = time.Second
)

// errStopped means that the engine ended although stop was not called, and returned no error.
var errStopped = errors.New("the engine stopped by itself")

// Poller is the gnet listener: TCP lines and WebSocket on one port.
type Poller struct {
	gnet.BuiltinEventEngine
	ProxyHeaders ProxyHeaders // the load balancers that send a PROXY header; set before Run

	limits   Limits
	dialects Dialects
	accept   Accept
	logger   zerolog.Logger

	lingerTime time.Duration

	unclaimed chan *pollerLoop // loops that no gnet loop uses yet
	loops     []*pollerLoop
	byLoop    sync.Map // gnet.EventLoop → *pollerLoop
	refused   *Gate    // counts refused connections that are still open

	newBacklog chan struct{} // a wake-up: a loop that had no backlog has one

	handOvers     sync.RWMutex  // each hand-over holds the read lock; stop takes the write lock
	handOverSlots chan struct{} // holds an element for each hand-over that registers a connection

	boot     sync.Once
	booted   chan struct{} // closed when the two below are set
	engine   gnet.Engine
	addr     net.Addr
	stopping atomic.Bool
}

// NewPoller returns a Poller with n loops, whose indexes are first, first+1, ….
func NewPoller(n, first int, limits Limits, dialects Dialects, accept Accept, logger zerolog.Logger) *Poller {
	p := &Poller{
		limits: limits, dialects: dialects, accept: accept, logger: logger,
		lingerTime: linger.Time,
		unclaimed:  make(chan *pollerLoop, n), booted: make(chan struct{}), refused: NewGate(maxRefused),
		handOverSlots: make(chan struct{}, maxHandOvers), newBacklog: make(chan struct{}, 1),
	}
	for i := range n {
		l := &pollerLoop{
			Loop: loop.New(first + i), poller: p,
			deadlines: make(map[*pollerConn]deadline),
			backlog:   make(map[*pollerConn]struct{}),
		}
		p.loops = append(p.loops, l)
		p.unclaimed <- l
	}
	return p
}

// Loops returns the loops, also before Run.
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

// serve drives the timers of the loops until ctx or the engine ends. done receives the result of
// the engine.
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
			case err := <-done: // the engine never started
				return err
			case <-p.booted:
				return p.stop(done)
			}
		case <-p.newBacklog:
			if !resuming { // otherwise Reset would delay the next tick
				resuming = true
				resume.Reset(backlogTick)
			}
		case <-resume.C:
			resuming = false
			for _, l := range p.loops {
				if l.backlogLen.Load() > 0 {
					resuming = true
					l.Post(l.resume)
				}
			}
			if !resuming {
				resume.Stop() // until newBacklog
			}
		case <-expire.C:
			for _, l := range p.loops {
				if l.deadlinesLen.Load() > 0 {
					l.Post(l.expire)
				}
			}
		}
	}
}

// stop ends the engine. With a context that has ended, Engine.Stop starts the shutdown and returns.
// Otherwise it would wait for the end itself, by polling every half second.
func (p *Poller) stop(done <-chan error) error {
	p.handOvers.Lock()
	p.stopping.Store(true)
	p.handOvers.Unlock()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.engine.Stop(ended)
	return <-done
}

// Booted is closed when the port is open.
func (p *Poller) Booted() <-chan struct{} { return p.booted }

// Addr returns the address listened on, once the port is open; nil if the system does not say.
func (p *Poller) Addr() net.Addr { return p.addr }

// OnBoot implements gnet.EventHandler.
func (p *Poller) OnBoot(e gnet.Engine) gnet.Action {
	p.engine = e
	p.addr = listenAddr(e)
	return gnet.None
}

// OnTick implements gnet.EventHandler. Its first call comes after the engine knows all its loops.
// OnBoot may be called earlier.
func (p *Poller) OnTick() (time.Duration, gnet.Action) {
	p.boot.Do(func() { close(p.booted) })
	return 24 * time.Hour, gnet.None
}

// listenAddr asks the system for the address. gnet has only the configured one, whose port may be
// 0.
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

// loopOf returns the pollerLoop that runs on g. The first call for g claims one.
func (p *Poller) loopOf(g gnet.EventLoop) *pollerLoop {
	if l, ok := p.byLoop.Load(g); ok {
		return l.(*pollerLoop)
	}
	l := <-p.unclaimed
	l.attach(g)
	p.byLoop.Store(g, l)
	return l
}

// OnOpen implements gnet.EventHandler. It refuses connections above the limits.
func (p *Poller) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	if pc, ok := c.Context().(*pollerConn); ok {
		pc.startHandedOver(c)
		return nil, gnet.None
	}
	pc := &pollerConn{loop: p.loopOf(c.EventLoop()), conn: c}
	if p.stopping.Load() || !p.limits.Gate.Enter() {
		return p.refuse(pc, "no room for another connection", overloadedMS)
	}
	if p.ProxyHeaders.from(c.RemoteAddr()) {
		pc.state = proxied // it counts for the address in the header
	} else if a := p.limits.Addresses; a != nil {
		var refusal *limit.Refusal
		if pc.address, refusal = a.Enter(addressOf(c.RemoteAddr())); refusal != nil {
			p.limits.Gate.Leave()
			return p.refuse(pc, refusal.Detail, refusal.Milliseconds())
		}
	}
	c.SetContext(pc)
	pc.loop.setDeadline(pc, p.limits.Handshake)
	return nil, gnet.None
}

// refuse closes a connection above the limits. The client's dialect is not known yet, so the reason
// is sent as JSON. Up to maxRefused refused connections linger, as other closed connections do.
func (p *Poller) refuse(pc *pollerConn, detail string, afterMS int64) ([]byte, gnet.Action) {
	opening, err := p.dialects.Stream('{').Open(dialect.Hello{})
	if err != nil {
		return nil, gnet.Close
	}
	pc.encoding = opening.Encoding
	if !p.refused.Enter() {
		out, _ := pc.encoding.AppendClosing(nil, wire.CloseOverloaded, detail, afterMS)
		return out, gnet.Close
	}
	pc.conn.SetContext(pc)
	pc.refused, pc.state = true, streaming
	pc.Close(wire.CloseOverloaded, detail, afterMS)
	return nil, gnet.None
}

// OnTraffic implements gnet.EventHandler.
func (p *Poller) OnTraffic(c gnet.Conn) gnet.Action {
	pc, ok := c.Context().(*pollerConn)
	if !ok {
		return gnet.Close
	}
	pc.read()
	return gnet.None
}

// OnClose implements gnet.EventHandler. After OnClose another connection may get the descriptor.
func (p *Poller) OnClose(c gnet.Conn, _ error) gnet.Action {
	pc, ok := c.Context().(*pollerConn)
	if !ok {
		return gnet.None
	}
	pc.onClose()
	if pc.refused {
		p.refused.Leave()
	} else {
		p.limits.Gate.Leave()
		p.limits.Addresses.Leave(pc.address)
	}
	return gnet.None
}

// gnetLogger writes gnet's own log to ours. gnet has one logger per process: the last Poller's. Its
// debug and info lines concern the start and single connections, which our log has.
type gnetLogger struct{ zerolog.Logger }

func (g gnetLogger) Debugf(f string, a ...any) { g.Trace().Str("from", "gnet").Msgf(f, a...) }
func (g gnetLogger) Infof(f string, a ...any)  { g.Trace().Str("from", "gnet").Msgf(f, a...) }
func (g gnetLogger) Warnf(f string, a ...any)  { g.Warn().Str("from", "gnet").Msgf(f, a...) }
func (g gnetLogger) Errorf(f string, a ...any) { g.Error().Str("from", "gnet").Msgf(f, a...) }
func (g gnetLogger) Fatalf(f string, a ...any) { g.Error().Str("from", "gnet").Msgf(f, a...) }
