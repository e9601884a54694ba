package hub

import (
	"runtime"

	"switchboard/broker/loop"
	"switchboard/internal/wire"
)

// writesPerTurn is how many subscribers a loop serves before others get the processor, about 300 µs:
// the writes do not give it away by themselves.
const writesPerYield = 64

// Run is loop.Task's: it delivers.
func (c *Channel) Run(on *loop.Loop) { c.deliver(&c.perLoop[on.Index], &c.hub.scratch[on.Index]) }

// scratch is what deliver writes, for one loop. It is kept, since an interface takes it: so nothing is allocated.
type scratch struct {
	batch  wire.Batch
	frames []wire.Frame
}

// of is a batch of entries, up to the next call.
func (s *scratch) of(entries []entry) *wire.Batch {
	s.frames = s.frames[:0]
	for _, e := range entries {
		s.frames = append(s.frames, e.frame)
	}
	s.batch = wire.Batch{Frames: s.frames}
	return &s.batch
}

// clear forgets the messages.
func (s *scratch) clear() {
	clear(s.frames)
	s.batch = wire.Batch{}
}

// deliver runs on the loop: every subscriber whose socket is not backed up gets all
// frames behind its cursor in one write. Most are at the same cursor and share the bytes.
func (c *Channel) deliver(l *loopSubscribers, s *scratch) {
	l.woken.Store(false)
	t := c.tail.Load()
	var shared *wire.Batch
	sharedFrom := int64(-1)
	for i, n := 0, 1; i < len(l.subs); n++ {
		if n%writesPerYield == 0 {
			runtime.Gosched()
		}
		sub := l.subs[i]
		switch {
		case sub.lagging || sub.cursor >= t.last:
		case sub.to.Backlogged():
			sub.markLagging()
		case sub.cursor == sharedFrom:
			sub.writeTo(shared, t.last)
		default:
			entries, ok := t.after(sub.cursor)
			if !ok || sharedFrom >= 0 || countFitting(entries) < len(entries) {
				sub.catchUp()
				break
			}
			shared, sharedFrom = s.of(entries), sub.cursor
			sub.writeTo(shared, t.last)
		}
		if i < len(l.subs) && l.subs[i] == sub { // a failed write takes the subscription out
			i++
		}
	}
	if shared != nil {
		s.clear()
	}
}
