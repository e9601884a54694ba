package hold

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeTimeout bounds how long a scrape of the metrics waits for the index.
const scrapeTimeout = 2 * time.Second

// collector counts the places that are held and sold when the metrics are scraped. Each broker that
// shares the index reports the same values.
type collector struct {
	h      *Holds
	places *prometheus.Desc
}

func (h *Holds) newCollector() *collector {
	return &collector{h: h, places: prometheus.NewDesc("switchboard_holds",
		"Places that are held or sold, by state, in all brokers.", []string{"state"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) { to <- c.places }

// Collect implements prometheus.Collector. Values that cannot be read are missing.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	for _, s := range []State{Held, Sold} {
		var lists []string
		for bit := range countBits {
			lists = append(lists, bitList(s, bit))
		}
		counts, err := c.h.opts.Index.Count(ctx, lists...)
		if err != nil {
			continue
		}
		places := 0
		for bit, resources := range counts {
			places += resources << bit
		}
		to <- prometheus.MustNewConstMetric(c.places, prometheus.GaugeValue, float64(places), string(s))
	}
}
