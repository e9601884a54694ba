package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/testbed"
	"switchboard/internal/wire"
)

// markerName is the client, and the user, that enters and leaves the watched channels to settle the
// views.
const markerName = "marker"

// settlement is one change of the marker, and the views that wait for its event. A page may show
// members whose events are still to be sent: a broker sends the changes of a large channel once a
// second. But it sends them in their order. So all events before a page have arrived when an event
// arrives that was caused after the page was read.
type settlement struct {
	in     bool                    // the marker enters
	before time.Time               // just before it does
	views  map[viewKey]*memberView // the views that had their pages then
}

// newSettlement returns a settlement of the views that have pages and are not settled. After this
// call the marker may enter or leave.
func (j *presenceJournal) newSettlement(in bool) settlement {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := settlement{in: in, before: time.Now(), views: map[viewKey]*memberView{}}
	for key, view := range j.views {
		if view.known && !view.settled {
			s.views[key] = view
		}
	}
	return s
}

// settle settles the views that have received the event, and returns those that still wait for it.
// A view that was reset, or replaced by a list of members, does not wait, and is not settled.
func (j *presenceJournal) settle(s settlement) (waiting []viewKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	marker := wire.ClientID(markerName, markerName)
	for key, view := range s.views {
		switch {
		case j.views[key] != view:
		case view.members[marker] != s.in:
			waiting = append(waiting, key)
		case view.lastEvent[marker].After(s.before):
			view.settled = true
			clear(view.ahead)
		}
	}
	return waiting
}

// isSettled reports whether all views are settled.
func (j *presenceJournal) isSettled() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, view := range j.views {
		if !view.settled {
			return false
		}
	}
	return true
}

// settlePresence lets the marker enter and leave all watched channels until all views are settled.
func (tb *bed) settlePresence(ctx context.Context) error {
	if tb.presence.isSettled() {
		return nil
	}
	marker, err := testbed.Connect(ctx, client.Options{
		URLs: []string{rawTCP.url(tb.brokers[0].TCP)}, Client: markerName, Token: tokenOf(markerName), BackoffMin: backoffMin, BackoffMax: backoffMax,
	})
	if err != nil {
		return err
	}
	err = tb.settleBy(ctx, marker.Client)
	return errors.Join(err, marker.Stop())
}

// settleBy is settlePresence with a marker that is connected. In the end the marker has left.
func (tb *bed) settleBy(ctx context.Context, marker *client.Client) error {
	channels := tb.watchedChannels()
	for in := true; !in || !tb.presence.isSettled(); in = !in {
		s := tb.presence.newSettlement(in)
		for _, channel := range channels {
			change := marker.Unsubscribe
			if in {
				change = func(ctx context.Context, channel string) error {
					_, err := marker.Subscribe(ctx, channel, client.SubscribeOptions{})
					return err
				}
			}
			if err := change(ctx, channel); err != nil {
				return fmt.Errorf("marker: %w", err)
			}
		}
		if err := await.Success(ctx, func() error {
			if waiting := tb.presence.settle(s); len(waiting) > 0 {
				return fmt.Errorf("no event about the marker has arrived for %v", waiting)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// watchedChannels returns the channels that watchers watch, without those of users.
func (tb *bed) watchedChannels() (channels []string) {
	for _, w := range tb.watchers {
		for _, channel := range w.channels {
			if !strings.HasPrefix(channel, userPrefix) {
				channels = append(channels, channel)
			}
		}
	}
	slices.Sort(channels)
	return slices.Compact(channels)
}
