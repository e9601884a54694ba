package transport

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
	"github.com/panjf2000/gnet/v2"

	"switchboard/broker/loop"
	"switchboard/internal/linger"
)

// pollerLoop is one gnet loop with its connections. Only code on the loop uses the fields, except
// for the atomic ones.
type pollerLoop struct {
	*loop.Loop
	poller *Poller
	output output

	deadlines    map[*pollerConn]deadline // of connections in a handshake or lingering
	deadlinesLen atomic.Int32             // len(deadlines)
	backlog      map[*pollerConn]struct{} // connections whose gnet buffer is not empty
	backlogLen   atomic.Int32             // len(backlog)

	reader bytes.Reader           // over the frame that readFrame reads
	header [ws.MaxHeaderSize]byte // scratch space of readFrame
}

// deadline says when to close a connection.
type deadline struct {
	at      time.Time
	dropped int // bytes of input that were dropped since the connection lingers
}

// attach lets g run the tasks of the loop. The Poller learns of g from its first connection.
// Earlier tasks run without g.
func (l *pollerLoop) attach(g gnet.EventLoop) {
	l.Attach(func(run func()) {
		// An error means that the engine has ended. Detach then runs what is left.
		_ = g.Execute(context.Background(), runnable(run))
	})
}

// runnable is a function as a gnet.Runnable.
type runnable func()

// Run implements gnet.Runnable.
func (run runnable) Run(context.Context) error {
	run()
	return nil
}

// addBacklog records that pc is backed up.
func (l *pollerLoop) addBacklog(pc *pollerConn) {
	l.backlog[pc] = struct{}{}
	l.backlogLen.Store(int32(len(l.backlog)))
	if len(l.backlog) == 1 {
		select {
		case l.poller.newBacklog <- struct{}{}:
		default: // serve has a wake-up already
		}
	}
}

// resume handles each connection whose backlog has gone out. It reports Writable to the session, or
// shuts the write side of a lingering connection.
func (l *pollerLoop) resume() {
	for pc := range l.backlog {
		if pc.conn.OutboundBuffered() > 0 {
			continue
		}
		delete(l.backlog, pc)
		if pc.state == lingering {
			pc.closeWrite()
		} else {
			pc.receiver.Writable()
		}
	}
	l.backlogLen.Store(int32(len(l.backlog)))
}

// setDeadline makes expire close pc after d, unless clearDeadline is called first.
func (l *pollerLoop) setDeadline(pc *pollerConn, d time.Duration) {
	l.deadlines[pc] = deadline{at: time.Now().Add(d)}
	l.deadlinesLen.Store(int32(len(l.deadlines)))
}

func (l *pollerLoop) clearDeadline(pc *pollerConn) {
	delete(l.deadlines, pc)
	l.deadlinesLen.Store(int32(len(l.deadlines)))
}

// mayDrop counts n bytes of input of a lingering connection, and reports whether they may be
// dropped. Otherwise the connection must be closed.
func (l *pollerLoop) mayDrop(pc *pollerConn, n int) bool {
	d := l.deadlines[pc]
	d.dropped += n
	l.deadlines[pc] = d
	return d.dropped <= linger.Bytes
}

// expire ends the connections whose time is up.
func (l *pollerLoop) expire() {
	now := time.Now()
	for pc, deadline := range l.deadlines {
		if now.After(deadline.at) {
			pc.drop()
		}
	}
}
