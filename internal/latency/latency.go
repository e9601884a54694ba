// Package latency defines the histograms of durations in the metrics.
package latency

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// bounds are the bounds of all classic buckets, in seconds. There are three per decade, so that
// common service levels such as 2.5 ms are among them.
var bounds = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100,
}

// Histogram returns the options of a histogram in seconds with the classic buckets from least to
// most. It is also a native histogram, if Prometheus requests that. Each native bucket is at most
// 1.1 times as wide as the previous one.
//
// Observe allocates only when it creates a native bucket. It takes 0.22 µs, or 0.05 µs with classic
// buckets alone.
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
