package kit

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// Results is a metric that counts operations by their result: ok, or the code of the error.
type Results struct{ *prometheus.CounterVec }

// NewResults returns the metric with a name.
func NewResults(name, help string) Results {
	return Results{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: name, Help: help + ", by result: ok, or the code of the error.",
	}, []string{"operation", "result"})}
}

// Count counts an operation, which defers the call, by its error. One that is stored but not
// replicated is ok. An error without a code is unavailable.
func (r Results) Count(operation string, err *error) {
	result := "ok"
	if e, ok := errors.AsType[*wire.Error](*err); ok {
		result = string(e.Code)
	} else if *err != nil && !errors.Is(*err, queue.ErrNotReplicated) {
		result = string(wire.Unavailable)
	}
	r.WithLabelValues(operation, result).Inc()
}

// scrapeTimeout bounds how long a scrape of the metrics waits for an index.
const scrapeTimeout = 2 * time.Second

// Gauges are metrics that are counted in an index when they are scraped. Each broker that shares
// the index reports the same values. It implements prometheus.Collector.
type Gauges struct {
	Descs []*prometheus.Desc
	// Count calls set with each value. Values that cannot be read are missing.
	Count func(ctx context.Context, set func(d *prometheus.Desc, value int, labels ...string))
}

// Describe implements prometheus.Collector.
func (g Gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range g.Descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (g Gauges) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	g.Count(ctx, func(d *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	})
}
