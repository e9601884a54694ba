package broker

import (
	"context"
	"time"

	"switchboard/broker/peer"
)

// confirmTimeout bounds the check of one message that the store seems to have lost.
const confirmTimeout = 5 * time.Second

// confirmMessage asks the store for a message that it seems to have lost. If the message is lost,
// all its receivers are notified of the gap.
func (b *Broker) confirmMessage(kind peer.Kind, name string, id int64) {
	b.pool.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), confirmTimeout)
		defer cancel()
		if err := b.pusher.ConfirmOne(ctx, kind, name, id); err != nil {
			b.log.Warn().Err(err).Msg("could not check for a lost message; the next rebind tries again")
		}
	})
}
