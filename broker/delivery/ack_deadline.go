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

// ErrNoAckDeadline is returned when a message is stored, and it could not be noted that somebody should look whether it is
// acknowledged. The same push with the same key notes it once more.
var ErrNoAckDeadline = errors.New("delivery: stored, but nobody watches over it")

// AckDeadline is a message that should be acknowledged in time.
type AckDeadline struct {
	User    string         // whose clients they are; "" for a push to a client by name
	Clients []ClientResult // where it is stored; a user may have none
	Data    []byte         // compact JSON
	Key     string         // of the push, or empty
	After   time.Duration
}

// watch notes what a push asks for, before the push is answered. So it is with a duplicate too: whoever stored that may
// have died before he noted it.
func (p *Pusher) setAckDeadline(ctx context.Context, user string, clients []ClientResult, payload Payload) error {
	if payload.NotifyAfter <= 0 || p.opts.SetAckDeadline == nil {
		return nil
	}
	w := AckDeadline{User: user, Clients: clients, Data: payload.Data, Key: payload.Key, After: payload.NotifyAfter}
	if err := p.opts.SetAckDeadline(ctx, w); err != nil {
		return fmt.Errorf("%w: %w", ErrNoAckDeadline, err)
	}
	return nil
}

// watchClients does so for pushes to clients by name. Those of a batch share round trips.
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

// groupOf names a push to all clients of a user: the same name when it is repeated with its key.
func groupName(user, key string) string {
	if key == "" {
		return "r" + rand.Text()
	}
	sum := sha256.Sum256([]byte(user + "\x00" + key)) // neither has a control character
	return "k" + hex.EncodeToString(sum[:12])
}
