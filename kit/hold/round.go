package hold

import (
	"context"
	"time"

	"switchboard/kit"
)

// Run makes a round every second, with jitter, until ctx ends. Only the list of resources and the
// metrics need it.
func (h *Holds) Run(ctx context.Context) error {
	return h.cards.Run(ctx, h.host.Logger(), "resources")
}

// Round computes the cards of the resources that have changed or are due, see [kit.Cards].
func (h *Holds) Round(ctx context.Context) error { return h.cards.Round(ctx) }

// computeCards computes the cards of resources.
func (h *Holds) computeCards(ctx context.Context, names []string) []kit.Computed {
	list := make([]kit.Computed, len(names))
	for i, l := range lookAt(ctx, h.host, names) {
		if list[i].Err = l.err; l.err != nil {
			continue
		}
		list[i].Card = l.card()
		if l.next > 0 {
			list[i].Changes = max(time.Millisecond, millis(l.next-l.clock+1))
		}
	}
	return list
}
