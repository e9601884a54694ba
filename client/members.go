package client

import (
	"context"
	"fmt"
	"iter"

	"switchboard/internal/wire"
)

// Members reads the clients that are present in a channel, with the values that they show. It needs
// no subscription. Subscribe with Presence first, then read the members and apply the calls of
// OnPresence: together they contain every member at least once. The first event about a client
// after a page may repeat what the page shows, so keep the members in a set, as the example does.
//
// Members reads one page after the other. After an error it ends.
func (c *Client) Members(ctx context.Context, channel string) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		for cursor := ""; ; {
			members, next, err := c.membersPage(ctx, channel, cursor)
			if err != nil {
				yield(Member{}, err)
				return
			}
			for _, m := range members {
				if !yield(m, nil) {
					return
				}
			}
			if cursor = next; cursor == "" {
				return
			}
		}
	}
}

func (c *Client) membersPage(ctx context.Context, channel, cursor string) (members []Member, next string, err error) {
	if err := wire.CheckName("channel", channel); err != nil {
		return nil, "", err
	}
	ev, err := c.roundTrip(ctx, wire.Request{Type: wire.TypePresence, Channel: channel, Cursor: cursor})
	if err != nil {
		return nil, "", fmt.Errorf("members of %s: %w", channel, err)
	}
	if ev.Clients != nil {
		members = *ev.Clients
	}
	return members, ev.Next, nil
}
