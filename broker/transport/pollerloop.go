package transport

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
	"github.com/panjf2000/gnet/v2"

	"switchboard/broker/loop"
)

// pollerLoop is one gnet loop and the connections on it. All but the counters belong to
// the loop.
type pollerLoop struct {
	*loop.Loop
	poller *Poller
	output output

	waiting map[*pollerConn]time.Time // in handshake or lingering: when to give up
	backlog map[*pollerConn]struct{}
	reader  bytes.Reader           // for the frame at hand
	header  [ws.MaxHeaderSize]byte // scratch space for the same
	lagging atomic.Int32           // len(backlog)
	overdue atomic.Int32           // len(waiting)
}

// attach makes g the host of the mailbox. A gnet loop shows itself with its first connection;
// until then tasks run without it.
func (l *pollerLoop) attach(g gnet.EventLoop) {
	l.Attach(func(run func()) {
		// An error means that the engine has ended: Detach makes up for the run.
		_ = g.Execute(context.Background(), owed(run))
	})
}

// owed is a run as gnet wants it.
type owed func()

// Run implements gnet.Runnable.
func (run owed) Run(context.Context) error {
	run()
	return nil
}

// lag notes that pc is backed up.
func (l *pollerLoop) lag(pc *pollerConn) {
	l.backlog[pc] = struct{}{}
	l.lagging.Store(int32(len(l.backlog)))
	if len(l.backlog) == 1 {
		select {
		case l.poller.lagging <- struct{}{}:
		default: // it is said already
		}
	}
}

// resume goes on where a backlog is gone.
func (l *pollerLoop) resume() {
	for pc := range l.backlog {
		if pc.conn.OutboundBuffered() > 0 {
			continue
		}
		delete(l.backlog, pc)
		if pc.state == lingering {
			pc.shut()
		} else {
			pc.to.Writable()
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
