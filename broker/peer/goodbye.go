package peer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// goodbyeTimeout is how long the sender waits for the receiver to end a link after a goodbye.
const goodbyeTimeout = time.Second

var errGoodbye = errors.New("the sender has said goodbye")

// CloseInbound ends the links from other servers with their calls, and refuses new ones.
func (l *Links) CloseInbound() {
	l.handshakes.close()
	l.in.close()
}

// Goodbye sends all queued hints, and announces on each link that no more hints follow. So the end
// of this server is no loss for the others. Later hints are dropped, and the others do not notice:
// call Goodbye only when this server stores nothing any more, and has sent the hints of all that it
// stored. Goodbye returns when all servers have the announcement, or ctx ends. End Run then.
func (l *Links) Goodbye(ctx context.Context) {
	l.leave()
	for _, k := range l.links() {
		select {
		case <-k.done:
		case <-ctx.Done():
			return
		}
	}
}

func (l *Links) isLeaving() bool {
	select {
	case <-l.leaving:
		return true
	default:
		return false
	}
}

// ending returns the ending of a batch whose hints are taken after the call.
func (k *link) ending(f features) (end ending) {
	if f.has(settled) {
		end.hasSettled, end.settled = true, k.l.opts.Settled()
	}
	return end
}

// sayGoodbye flushes the queue and announces that no more hints follow. ended receives when the
// receiver has ended the link.
func (k *link) sayGoodbye(ctx context.Context, f features, write func([]byte) error, ended chan error) (err error) {
	k.outbox.leave()
	var hints []Hint
	var buf []byte
	for whole := false; !whole; {
		end := k.ending(f)
		var number uint64
		hints, number, whole = k.take(nil)
		if end.goodbye = f.has(goodbye); !whole {
			end = ending{} // hints after these were dropped: the next batch has their number
		}
		if buf, err = k.flush(buf, number, hints, end, write); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	if !f.has(goodbye) {
		return errGoodbye
	}
	// The receiver ends the link. If this end did, unread answers could make the system reset the
	// connection, and the receiver would lose the last batches.
	timeout := time.NewTimer(goodbyeTimeout)
	defer timeout.Stop()
	select {
	case err := <-ended:
		ended <- err // serve receives it again
	case <-timeout.C:
	case <-ctx.Done():
	}
	return errGoodbye
}
