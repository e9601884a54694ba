package broker

import (
	"context"
	"time"

	"switchboard/broker/peer"
)

// confirmTimeout bounds the check of one message that the store seems to have lost.
const confirmTimeout = 5 * time.Second

// confirmMessage asks the store, in the background, whether it still has a message that it had
// acknowledged. If not, all receivers of the message are notified of the gap.
func (b *Broker) confirmMessage(kind peer.Kind, name string, id int64) {
	b.pool.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), confirmTimeout)
		defer cancel()
		if err := b.pusher.ConfirmOne(ctx, kind, name, id); err != nil {
			b.log.Warn().Err(err).Msg("could not check for a lost message; the check after the next failover repeats it")
		}
	})
}
