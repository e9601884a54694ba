package broker

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// onlineCollector shows the number of users that are online in all brokers when the metrics are
// scraped. All brokers report about the same value.
type onlineCollector struct{ b *Broker }

var onlineDesc = prometheus.NewDesc("switchboard_online_users",
	"Users that are online in all brokers, each counted once; above 2048 users of one broker an estimate.", nil, nil)

// Describe implements prometheus.Collector.
func (c onlineCollector) Describe(to chan<- *prometheus.Desc) { to <- onlineDesc }

// Collect implements prometheus.Collector. A number that is not known is missing.
func (c onlineCollector) Collect(to chan<- prometheus.Metric) {
	if n, known := c.b.cluster.OnlineUsers(context.Background()); known {
		to <- prometheus.MustNewConstMetric(onlineDesc, prometheus.GaugeValue, float64(n.Users))
	}
}
