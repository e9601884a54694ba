package delivery

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrNoAckDeadline means that a message is stored, but its acknowledgement deadline could not be
// set. The same push with the same key sets it again.
var ErrNoAckDeadline = errors.New("delivery: stored, but the acknowledgement deadline is not set")

// AckDeadline is a message that clients must acknowledge within a time.
type AckDeadline struct {
	User    string         // the user of a push to a user; empty for a push to a client
	Clients []ClientResult // where the message is stored; a user may have no clients
	Data    []byte         // compact JSON
	Key     string         // idempotency key of the push, or empty
	After   time.Duration
}

// setAckDeadline sets the deadline of a push before the push is answered. It also does so for a
// duplicate, because the server that stored the message may have died before it set the deadline.
func (p *Pusher) setAckDeadline(ctx context.Context, user string, clients []ClientResult, payload Payload) error {
	if payload.NotifyAfter <= 0 || p.opts.SetAckDeadline == nil {
		return nil
	}
	d := AckDeadline{User: user, Clients: clients, Data: payload.Data, Key: payload.Key, After: payload.NotifyAfter}
	if err := p.opts.SetAckDeadline(ctx, d); err != nil {
		return fmt.Errorf("%w: %w", ErrNoAckDeadline, err)
	}
	return nil
}

// setClientAckDeadlines calls setAckDeadline for pushes to clients. The calls of a batch share
// round trips.
func (p *Pusher) setClientAckDeadlines(ctx context.Context, pushes []*Push) {
	if !slices.ContainsFunc(pushes, func(push *Push) bool { return push.NotifyAfter > 0 }) {
		return
	}
	var group errgroup.Group
	group.SetLimit(256)
	for _, push := range pushes {
		if push.Client.ID == 0 { // not stored
			continue
		}
		group.Go(func() error {
			if err := p.setAckDeadline(ctx, "", []ClientResult{push.Client}, push.Payload); err != nil {
				push.Err = err
			}
			return nil
		})
	}
	_ = group.Wait()
}

// ackGroupName returns the queue.ClientPush.AckGroup of a push to all clients of a user. A repeated
// push with the same key has the same name.
func ackGroupName(user, key string) string {
	if key == "" {
		return "r" + rand.Text()
	}
	sum := sha256.Sum256([]byte(user + "\x00" + key)) // neither has a control character
	return "k" + hex.EncodeToString(sum[:12])
}
