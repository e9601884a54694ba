package latency

import (
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// windowSamples is how many samples a Window keeps.
const windowSamples = 10

// Window computes quantiles of the latest observations of histograms that Histogram describes. It
// reads their native buckets, so it costs nothing where durations are observed.
type Window struct {
	histograms []prometheus.Metric

	mu      sync.Mutex // guards samples
	samples []sample   // the oldest first
}

// sample is the content of the histograms at one moment.
type sample struct {
	schema  int32 // of the native buckets: each is 2^(2^-schema) times as wide as the one before
	count   uint64
	buckets map[int]uint64 // the number of observations by the index of the native bucket
}

// NewWindow returns a Window over the sum of some histograms.
func NewWindow(histograms ...prometheus.Metric) *Window { return &Window{histograms: histograms} }

// Sample remembers the content of the histograms. The window reaches back over the last ten calls:
// call it about once a second.
func (w *Window) Sample() {
	now := w.read()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.samples) == windowSamples {
		w.samples = slices.Delete(w.samples, 0, 1)
	}
	w.samples = append(w.samples, now)
}

// Quantiles returns the quantiles of the observations in the window, in seconds, with an error of
// at most the width of a native bucket. They are nil if there are no observations. count is the
// number of observations since the start.
func (w *Window) Quantiles(quantiles ...float64) (values []float64, count uint64) {
	now := w.read()
	recent := now
	w.mu.Lock()
	if len(w.samples) == windowSamples { // else the window is the time since the start
		recent = now.since(w.samples[0])
	}
	w.mu.Unlock()
	if recent.count == 0 {
		return nil, now.count
	}
	for _, q := range quantiles {
		values = append(values, recent.quantile(q))
	}
	return values, now.count
}

// read returns the sum of the histograms.
func (w *Window) read() (sum sample) {
	for i, h := range w.histograms {
		var m dto.Metric
		if h.Write(&m) != nil { // only for metrics with invalid labels
			continue
		}
		s := sampleOf(m.Histogram)
		if i == 0 {
			sum = s
			continue
		}
		sum.coarsen(s.schema)
		s.coarsen(sum.schema)
		sum.count += s.count
		for index, n := range s.buckets {
			sum.buckets[index] += n
		}
	}
	return sum
}

// sampleOf decodes the native buckets of a histogram. Observations in the zero bucket count only in
// count.
func sampleOf(h *dto.Histogram) sample {
	s := sample{schema: h.GetSchema(), count: h.GetSampleCount(), buckets: make(map[int]uint64)}
	var index int
	var n int64
	deltas := h.GetPositiveDelta()
	for _, span := range h.GetPositiveSpan() {
		index += int(span.GetOffset())
		for range span.GetLength() {
			n += deltas[0]
			deltas = deltas[1:]
			s.buckets[index] = uint64(n)
			index++
		}
	}
	return s
}

// coarsen changes to a lower schema, which halves the number of buckets at each step.
func (s *sample) coarsen(schema int32) {
	for ; s.schema > schema; s.schema-- {
		coarse := make(map[int]uint64, len(s.buckets))
		for index, n := range s.buckets {
			coarse[(index+1)>>1] += n
		}
		s.buckets = coarse
	}
}

// since returns the observations of s that earlier does not have. If the histogram was reset in
// between, these are all of s.
func (s sample) since(earlier sample) sample {
	s.coarsen(earlier.schema)
	earlier.coarsen(s.schema)
	for index, n := range earlier.buckets {
		if s.buckets[index] < n {
			return s
		}
	}
	difference := sample{schema: s.schema, count: s.count - min(earlier.count, s.count), buckets: make(map[int]uint64)}
	for index, n := range s.buckets {
		if n -= earlier.buckets[index]; n > 0 {
			difference.buckets[index] = n
		}
	}
	return difference
}

// quantile returns a quantile of a sample that is not empty. Within a bucket, it interpolates
// exponentially, as Prometheus does.
func (s sample) quantile(q float64) float64 {
	base := math.Pow(2, math.Pow(2, -float64(s.schema)))
	inBuckets := uint64(0)
	for _, n := range s.buckets {
		inBuckets += n
	}
	below := float64(s.count - inBuckets) // observations of 0
	rank := q * float64(s.count)
	if rank < below {
		return 0
	}
	value := 0.0
	for _, index := range slices.Sorted(maps.Keys(s.buckets)) {
		n := float64(s.buckets[index])
		value = math.Pow(base, float64(index)) // the upper bound of the bucket
		if below+n >= rank {
			return math.Pow(base, float64(index)-1+(rank-below)/n)
		}
		below += n
	}
	return value
}
