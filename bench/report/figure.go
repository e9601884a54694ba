package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// figure is the median of some values, with their range.
type figure struct{ median, min, max float64 }

// newFigure returns the figure of the values; ok is false if there are none.
func newFigure(values []float64) (f figure, ok bool) {
	if len(values) == 0 {
		return f, false
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return figure{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}, true
}

// ratio returns a/b, computed round by round if both have the same number of rounds. Otherwise it
// is the ratio of the medians, without a range.
func ratio(a, b []float64) (f figure, ok bool) {
	if len(a) == len(b) {
		each := make([]float64, 0, len(a))
		for i := range a {
			if b[i] > 0 {
				each = append(each, a[i]/b[i])
			}
		}
		if len(each) == len(a) {
			return newFigure(each)
		}
	}
	x, okX := newFigure(a)
	y, okY := newFigure(b)
	if !okX || !okY || y.median <= 0 {
		return f, false
	}
	r := x.median / y.median
	return figure{r, r, r}, true
}

// formatNumber formats v with three significant digits.
func formatNumber(v float64) string {
	size := math.Abs(v)
	switch {
	case size == 0:
		return "0"
	case size >= 999.5:
		return Thousands(int64(math.Round(v)))
	case size >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case size >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case size >= 0.0995:
		return fmt.Sprintf("%.2f", v)
	case size >= 0.00995:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.1g", v)
}

// Thousands formats n with commas.
func Thousands(n int64) string {
	switch {
	case n < 0:
		return "-" + Thousands(-n)
	case n < 1000:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", Thousands(n/1000), n%1000)
}

// format formats the median with its unit.
func (f figure) format(u unit) string {
	return strings.TrimSpace(formatNumber(f.median*u.scale) + " " + u.name)
}

// rangeText formats the range, "" if it is empty.
func (f figure) rangeText(u unit) string {
	if f.min == f.max {
		return ""
	}
	return fmt.Sprintf("%s – %s", formatNumber(f.min*u.scale), formatNumber(f.max*u.scale))
}

// withRange formats the median and the range.
func (f figure) withRange(u unit) string {
	if s := f.rangeText(u); s != "" {
		return fmt.Sprintf("%s [%s]", f.format(u), s)
	}
	return f.format(u)
}

// unit is the unit in which a metric is shown. Values are multiplied by scale.
type unit struct {
	name  string
	scale float64
}

var (
	plain  = unit{"", 1}
	times  = unit{"×", 1}
	micros = unit{"µs", 1}
	millis = unit{"ms", 1}
	second = unit{"s", 1}
	octets = unit{"bytes", 1}
	kilo   = unit{"KB", 1e-3} // of 1000 bytes
)
