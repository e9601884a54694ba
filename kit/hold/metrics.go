package hold

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/kit"
)

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
