package hold

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

// look is a resource as it is now.
type look struct {
	name    string
	status  *Status // nil if there is no resource
	id      int64   // the last id of the channel, at most
	clock   int64   // the store's clock, Unix ms
	next    int64   // when the resource or one of its fields ends, Unix ms; 0 for never
	expired int     // fields that have ended and that no change has removed yet
	bytes   int     // of $resource
	err     error
}

// counted are the groups of fields that a look counts: the seats that are taken, and those among
// them that are held. A seat is a part of $$live:… while it is held. The store counts them by its
// indexes, so that a look costs the same however many seats there are.
var counted = []state.FieldGroup{{Prefix: seatGroup}, {Prefix: livePrefix, Parents: true}}

// lookAt reads resources, in one round trip.
func lookAt(ctx context.Context, states kit.StateReader, names []string) []look {
	reads := kit.ReadsOf(channelPrefix, names, queue.StateRead{Fields: []string{resourceField}, Count: counted})
	looks := make([]look, len(names))
	for i, page := range states.ReadStates(ctx, reads) {
		looks[i].name = names[i]
		if err := looks[i].parse(page); err != nil {
			looks[i].err = fmt.Errorf("read resource %s: %w", names[i], err)
		}
	}
	return looks
}

// parse takes what was read.
func (l *look) parse(page queue.Outcome[queue.StatePage]) error {
	if page.Err != nil {
		return page.Err
	}
	v := &view{channel: channelPrefix + l.name}
	if err := v.parse(&page.Value); err != nil {
		return err
	}
	l.id, l.clock, l.expired = page.Value.ID, page.Value.Clock, page.Value.Expired
	if v.resource == nil {
		return nil
	}
	l.bytes = len(page.Value.Fields[0].Value)
	taken, held := page.Value.Counts[0], page.Value.Counts[1]
	s := &Status{Name: l.name, Version: v.version, Resource: *v.resource, Held: held, Sold: taken - held}
	s.Free = max(0, s.Capacity-taken)
	l.status, l.next = s, s.Ends
	if ends := page.Value.Ends; ends > 0 && (l.next == 0 || ends < l.next) {
		l.next = ends
	}
	return nil
}

// Lists of the index. The list all has every resource with the score 0, and so in the order of the
// names. A resource is in held/3 if the number of its held places has the bit with the value 2^3,
// and in sold/… likewise. So the places of all resources are counted without reading the cards.
const (
	allList   = "all"
	countBits = 14 // of MaxCapacity
)

// bitList returns the list of the resources whose number of places in a state has a bit.
func bitList(s State, bit int) string { return fmt.Sprintf("%s/%d", s, bit) }

// card returns the card of the resource, which has no lists if there is none. Holds end without a
// message in the log, so that the version is the clock, as an id, if that is higher.
func (l *look) card() index.Card {
	c := index.Card{ID: l.name, Version: max(l.id, queue.IDAt(time.UnixMilli(l.clock)))}
	if l.status == nil {
		return c
	}
	counts := map[State]int{Held: l.status.Held, Sold: l.status.Sold}
	c.Lists = map[string]int64{allList: 0}
	for s, n := range counts {
		for bit := range countBits {
			if n>>bit&1 == 1 {
				c.Lists[bitList(s, bit)] = 0
			}
		}
	}
	c.Data = kit.JSON(counts)
	return c
}

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

// newCollector returns the numbers of places that are held and sold.
func (h *Holds) newCollector() prometheus.Collector {
	holds := prometheus.NewDesc("switchboard_holds", "Places that are held or sold, by state, in all brokers.", []string{"state"}, nil)
	return kit.Gauges{
		Descs: []*prometheus.Desc{holds},
		Count: func(ctx context.Context, set func(*prometheus.Desc, int, ...string)) {
			for _, s := range []State{Held, Sold} {
				var lists []string
				for bit := range countBits {
					lists = append(lists, bitList(s, bit))
				}
				counts, err := h.opts.Index.Count(ctx, lists...)
				if err != nil {
					continue
				}
				places := 0
				for bit, resources := range counts {
					places += resources << bit
				}
				set(holds, places, string(s))
			}
		},
	}
}
