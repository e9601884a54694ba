package main

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// percentiles are the points of a latency curve.
var percentiles = []float64{50, 75, 90, 95, 99, 99.5, 99.9, 99.99}

const (
	minLatency = int64(time.Microsecond)
	maxLatency = int64(time.Minute)
	digits     = 3
)

// newHistogram returns a histogram of nanoseconds.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(minLatency, maxLatency, digits) }

// recordLatency records the latency of one delivery. Values out of range count as the nearest
// limit.
func (t *trial) recordLatency(ns int64) {
	_ = t.histogram.RecordValue(min(max(ns, minLatency), maxLatency)) // no error within the range
}

// measureLatency pushes at a rate that is the same for all systems. CPU per push includes the
// server's other work for its connections. At a moderate rate this is a larger share than in a
// closed loop.
func measureLatency(ctx context.Context, t *trial) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	return t.withPublishers(func(p *publishers) error {
		if err := p.pushToEach(ctx, true); err != nil {
			return err
		}
		spent, pushes, err := t.spentPushing(func() (int64, error) { return p.openLoop(ctx, t.rate, warmUp+t.size.time) })
		if err != nil {
			return err
		}
		t.recordPushCost(spent, pushes)
		for _, q := range percentiles {
			value := time.Duration(t.histogram.ValueAtPercentile(q))
			t.results = append(t.results, result{t.scenario.id, "latency_us", q, micros(value, 1)})
		}
		t.record("rate_per_s", t.rate)
		return nil
	})
}
