package main

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// percentiles are the points of a latency curve.
var percentiles = []float64{50, 75, 90, 95, 99, 99.5, 99.9, 99.99}

const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Minute)
	digits   = 3
)

// newHistogram is of nanoseconds.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(shortest, longest, digits) }

// latency enters the time of one delivery; what is out of range is an end of it.
func (t *trial) latency(ns int64) {
	_ = t.histogram.RecordValue(min(max(ns, shortest), longest)) // within the range there is no error
}

// measureLatency pushes at a rate that is the same for all. CPU per push includes what the server
// does meanwhile for its connections: at a moderate rate a larger share than in a closed loop.
func measureLatency(ctx context.Context, t *trial) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	return t.with(func(p *publishers) error {
		if err := p.each(ctx, true); err != nil {
			return err
		}
		before, err := t.sample()
		if err != nil {
			return err
		}
		pushes, err := p.openLoop(ctx, t.rate, warmTime+t.size.time)
		if err != nil {
			return err
		}
		if err := t.cost(before, pushes); err != nil {
			return err
		}
		for _, q := range percentiles {
			value := time.Duration(t.histogram.ValueAtPercentile(q))
			t.figures = append(t.figures, figure{t.scenario.id, "latency_us", q, micros(value, 1)})
		}
		t.found("rate_per_s", t.rate)
		return nil
	})
}
