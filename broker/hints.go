package broker

import (
	"context"
	"time"

	"switchboard/broker/peer"
)

// confirmTimeout bounds the check of one message that the store seems to have lost.
const confirmTimeout = 5 * time.Second

// handleHint acts on a hint from this server or from another one.
func (b *Broker) handleHint(h peer.Hint) {
	switch h.Kind {
	case peer.Channel, peer.ChannelEntry:
		if c := b.hub.Channel(h.Name); c != nil {
			c.Hint(h.ID, h.Prev, h.Data)
		}
	case peer.Client:
		b.clientWatches.hint(h.Name)
		b.sessions.Hint(h.Name, h.ID, h.Prev, h.Data)
	case peer.Supersede:
		b.sessions.Supersede(h.Name, h.ID)
	case peer.Acknowledged:
		b.sessions.Acknowledged(h.Name, h.Prev, h.ID)
	case peer.Presence, peer.Here:
		b.presence.Hint(h)
	case peer.User:
		b.presence.UserChanged(h.Name)
	}
}

// sendHint sends a hint to another server. It does nothing without a shared store.
func (b *Broker) sendHint(server string, h peer.Hint) {
	if b.links != nil {
		b.links.Send(server, h)
	}
}

// supersede implements session.Notify.Superseded: it notifies the server that lost a client, or all
// servers if the server is unknown.
func (b *Broker) supersede(server, client string, generation int64) {
	h := peer.Hint{Kind: peer.Supersede, Name: client, ID: generation}
	if server != "" {
		b.sendHint(server, h)
		return
	}
	for id := range *b.membership.live.Load() {
		if id != b.ID() {
			b.sendHint(id, h)
		}
	}
}

// notifyAcknowledged implements session.Notify.Acknowledged.
func (b *Broker) notifyAcknowledged(server, client string, generation, id int64) {
	b.sendHint(server, peer.Hint{Kind: peer.Acknowledged, Name: client, ID: id, Prev: generation})
}

// userChanged notifies all servers with watchers that a client of the user connected or
// disconnected.
func (b *Broker) userChanged(user string) {
	b.presence.UserChanged(user)
	for id, s := range *b.membership.live.Load() {
		if s.Watching > 0 && id != b.ID() {
			b.sendHint(id, peer.Hint{Kind: peer.User, Name: user})
		}
	}
}

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
