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

// flushQueue writes the queue, or an empty batch. If hints after those in the queue were dropped,
// it returns false, and there is no goodbye yet: the next batch has their number.
func (k *link) flushQueue(goodbye bool, write func([]byte) error) (whole bool, err error) {
	hints, number, whole := k.take(nil)
	_, err = k.flush(nil, number, hints, ending{goodbye: goodbye && whole}, write)
	return whole, err
}

// sayGoodbye flushes the queue and announces that no more hints follow. ended receives when the
// receiver has ended the link.
func (k *link) sayGoodbye(ctx context.Context, f features, write func([]byte) error, ended chan error) (err error) {
	k.outbox.leave()
	for whole := false; !whole; {
		if whole, err = k.flushQueue(f.has(goodbye), write); err != nil {
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
