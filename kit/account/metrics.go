package account

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeTimeout bounds how long a scrape of the metrics waits for the index.
const scrapeTimeout = 2 * time.Second

// collector counts the accounts when the metrics are scraped. Each broker that shares the index
// reports the same values.
type collector struct {
	a        *Accounts
	accounts *prometheus.Desc
}

func (a *Accounts) newCollector() *collector {
	return &collector{a, prometheus.NewDesc("switchboard_accounts", "Accounts by state, in all brokers.", []string{"state"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) { to <- c.accounts }

// Collect implements prometheus.Collector. Values that cannot be read are missing.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	counts, err := c.a.index.Count(ctx, string(Open), string(Locked), string(Deleted))
	if err != nil {
		return
	}
	for i, state := range []State{Open, Locked, Deleted} {
		to <- prometheus.MustNewConstMetric(c.accounts, prometheus.GaugeValue, float64(counts[i]), string(state))
	}
}
