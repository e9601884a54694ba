package latency

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/internal/allocs"
)

func TestBuckets(t *testing.T) {
	h := prometheus.NewHistogram(Histogram("name", "help", 0.001, 0.1))
	h.Observe(0.002)
	h.Observe(30)
	r := prometheus.NewRegistry()
	r.MustRegister(h)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	m := families[0].Metric[0].GetHistogram()
	var classic []float64
	for _, b := range m.Bucket {
		classic = append(classic, b.GetUpperBound())
	}
	if want := []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1}; !slices.Equal(classic, want) {
		t.Errorf("classic buckets %v, want %v", classic, want)
	}
	if m.GetSchema() != 3 || len(m.PositiveSpan) != 2 {
		t.Errorf("native buckets: schema %d, spans %v", m.GetSchema(), m.PositiveSpan)
	}
}

// hot returns cases that observe latencies in native buckets that already exist.
func hot() []allocs.Case {
	observe := func(o prometheus.HistogramOpts) func() {
		h, i := prometheus.NewHistogram(o), 0
		next := func() {
			i++
			h.Observe(0.0002 + float64(i%64)*1e-5)
		}
		for range 64 {
			next()
		}
		return next
	}
	both := Histogram("name", "help", 0.0001, 10)
	classic := both
	classic.NativeHistogramBucketFactor = 0
	return []allocs.Case{
		allocs.Of("observe", 0, observe(both)),
		allocs.Of("observe, classic buckets only", 0, observe(classic)),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot()) }
