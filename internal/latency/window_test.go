package latency

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// quantiles returns the median and the 99th percentile of the window, and the number of
// observations since the start.
func quantiles(t *testing.T, w *Window) (p50, p99 float64, count uint64) {
	t.Helper()
	values, count := w.Quantiles(0.5, 0.99)
	if len(values) != 2 {
		t.Fatalf("quantiles: %v", values)
	}
	return values[0], values[1], count
}

// within reports whether got is within the width of a native bucket of want.
func within(got, want float64) bool { return got > want/1.1 && got < want*1.1 }

func observe(h prometheus.Histogram, n int, value func(i int) float64) {
	for i := range n {
		h.Observe(value(i))
	}
}

func TestWindowQuantiles(t *testing.T) {
	for name, c := range map[string]struct {
		value    func(i int) float64
		p50, p99 float64
	}{
		"one value":   {func(int) float64 { return 0.003 }, 0.003, 0.003},
		"even":        {func(i int) float64 { return float64(i+1) / 1e4 }, 0.05, 0.099},
		"two modes":   {func(i int) float64 { return []float64{0.0001, 2}[i%100/98] }, 0.0001, 2},
		"wide ranges": {func(i int) float64 { return math.Pow(10, float64(i)/100-6) }, 0.1, 7943},
	} {
		h := prometheus.NewHistogram(Histogram("h", "", 0.0001, 10))
		w := NewWindow(h)
		observe(h, 1000, c.value)
		p50, p99, count := quantiles(t, w)
		if count != 1000 || !within(p50, c.p50) || !within(p99, c.p99) {
			t.Errorf("%s: p50 %g, p99 %g of %d; want %g and %g", name, p50, p99, count, c.p50, c.p99)
		}
	}
}

// TestWindowForgets: observations before the oldest sample do not count.
func TestWindowForgets(t *testing.T) {
	h := prometheus.NewHistogram(Histogram("h", "", 0.0001, 10))
	w := NewWindow(h)
	if values, count := w.Quantiles(0.5); values != nil || count != 0 {
		t.Fatalf("before the first observation: %v, %d", values, count)
	}
	observe(h, 100, func(int) float64 { return 5 })
	w.Sample()
	if p50, _, _ := quantiles(t, w); !within(p50, 5) {
		t.Errorf("p50 is %g before the window is full, want that since the start", p50)
	}
	for range windowSamples {
		w.Sample()
		observe(h, 1, func(int) float64 { return 0.001 })
	}
	if p50, _, count := quantiles(t, w); !within(p50, 0.001) || count != 100+windowSamples {
		t.Errorf("p50 is %g of %d, want that of the last samples", p50, count)
	}
	for range windowSamples {
		w.Sample()
	}
	if values, _ := w.Quantiles(0.5); values != nil {
		t.Errorf("without new observations: %v", values)
	}
}

// TestWindowSum: the window of several histograms has the observations of all, also if one of them
// has reduced its resolution.
func TestWindowSum(t *testing.T) {
	fine := prometheus.NewHistogram(Histogram("h", "", 0.0001, 10))
	o := Histogram("h", "", 0.0001, 10)
	o.NativeHistogramMaxBucketNumber = 4
	coarse := prometheus.NewHistogram(o)
	w := NewWindow(fine, coarse)
	observe(fine, 90, func(int) float64 { return 0.001 })
	for range windowSamples {
		w.Sample()
	}
	observe(fine, 90, func(int) float64 { return 0.001 })
	observe(coarse, 10, func(i int) float64 { return 0.1 * float64(i+1) })
	values, count := w.Quantiles(0.5, 0.99)
	if count != 190 || len(values) != 2 || values[0] > 0.01 || values[1] < 0.3 || values[1] > 16 {
		t.Errorf("quantiles %v of %d", values, count)
	}
}

// TestCoarsen: a value is in the same bucket, whether a histogram counted it with a low resolution
// or its sample was reduced to that.
func TestCoarsen(t *testing.T) {
	for _, value := range []float64{0.0003, 0.25, 0.26, 1, 1.01, 7, 4096} {
		index := func(schema int) int { return int(math.Ceil(math.Log2(value) * math.Pow(2, float64(schema)))) }
		s := sample{schema: 3, count: 1, buckets: map[int]uint64{index(3): 1}}
		for schema := 3; schema >= -1; schema-- {
			if s.coarsen(int32(schema)); s.buckets[index(schema)] != 1 || len(s.buckets) != 1 {
				t.Errorf("%g with schema %d: %v, want %d", value, schema, s.buckets, index(schema))
			}
		}
	}
}

// TestWindowReset: after a histogram was reset, its observations since then count.
func TestWindowReset(t *testing.T) {
	before := sample{schema: 3, count: 30, buckets: map[int]uint64{1: 10, 2: 20}}
	now := sample{schema: 3, count: 5, buckets: map[int]uint64{1: 5}}
	if got := now.since(before); got.count != 5 || got.buckets[1] != 5 {
		t.Errorf("after a reset: %+v", got)
	}
}

func BenchmarkWindowSample(b *testing.B) {
	h := prometheus.NewHistogram(Histogram("h", "", 0.0001, 10))
	observe(h, 10000, func(i int) float64 { return float64(i+1) / 1e5 })
	w := NewWindow(h)
	b.ReportAllocs()
	for b.Loop() {
		w.Sample()
	}
}
