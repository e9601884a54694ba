package queue

import (
	"context"
	"fmt"
)

// ConfirmChannel checks a message that AppendChannel stored. It returns nil if the store has the
// message, or had it until it was trimmed or expired. If the store lost the message, ConfirmChannel
// appends a marker to the channel, which reports the loss to readers. Only the call that appends
// the marker returns it.
func (r *Redis) ConfirmChannel(ctx context.Context, channel string, id int64) (*Marker, error) {
	keys := []string{r.keys.channel(channel), r.keys.channelMeta(channel), r.keys.channelServers(channel)}
	reply, err := r.pipe.EvalArray(ctx, confirmChannelScript, keys, decimal(id),
		millis(r.opts.ChannelTTL), millis(r.opts.ChannelTTL+r.opts.MetaTTL), r.clock.minimum())
	if err == nil && reply.Len() == 0 {
		return nil, nil
	}
	if err == nil {
		m := &Marker{ID: reply.Int(), Prev: reply.Int(), Data: []byte(reply.Text()), Servers: reply.Texts()}
		if err = reply.Err; err == nil {
			return m, nil
		}
	}
	return nil, fmt.Errorf("confirm %d of channel %s: %w", id, channel, err)
}

// ConfirmClient does for AppendClient what ConfirmChannel does for AppendChannel. An acknowledged
// message is not lost.
func (r *Redis) ConfirmClient(ctx context.Context, client string, id int64) (*Marker, error) {
	reply, err := r.pipe.EvalArray(ctx, confirmClientScript, append(r.clientKeys(client), r.keys.groups(client)),
		decimal(id), millis(r.opts.ClientTTL), millis(r.opts.RecordTTL), r.clock.minimum())
	if err == nil && reply.Len() == 0 {
		return nil, nil
	}
	if err == nil {
		m := &Marker{ID: reply.Int(), Prev: reply.Int(), Data: []byte(reply.Text())}
		if server := reply.Text(); server != "" {
			m.Servers = []string{server}
		}
		if err = reply.Err; err == nil {
			return m, nil
		}
	}
	return nil, fmt.Errorf("confirm %d of client %s: %w", id, client, err)
}
