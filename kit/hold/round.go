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

// computeCards computes the cards of resources, and removes what has expired.
func (h *Holds) computeCards(ctx context.Context, names []string) []kit.Computed {
	list := make([]kit.Computed, len(names))
	var expired []string
	for i, l := range lookAt(ctx, h.host, names) {
		if list[i].Err = l.err; l.err != nil {
			continue
		}
		if l.expired > 0 {
			expired = append(expired, channelPrefix+l.name)
		}
		list[i].Card = l.card()
		if l.next > 0 {
			list[i].Changes = max(time.Millisecond, millis(l.next-l.clock+1))
		}
	}
	// Each look has to look at the fields that are due, until they are removed.
	if err := h.host.SweepStates(ctx, expired...); err != nil {
		log := h.host.Logger()
		log.Warn().Err(err).Msg("fields of expired holds are removed later")
	}
	return list
}
