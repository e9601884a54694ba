package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// figure is a median, and the range around it.
type figure struct{ median, least, most float64 }

// summary is the figure of values; ok is false for none.
func summary(values []float64) (f figure, ok bool) {
	if len(values) == 0 {
		return f, false
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return figure{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}, true
}

// ratio is a over b, round by round where both have as many; else of the medians alone, without a range.
func ratio(a, b []float64) (f figure, ok bool) {
	if len(a) == len(b) {
		each := make([]float64, 0, len(a))
		for i := range a {
			if b[i] > 0 {
				each = append(each, a[i]/b[i])
			}
		}
		if len(each) == len(a) {
			return summary(each)
		}
	}
	x, okX := summary(a)
	y, okY := summary(b)
	if !okX || !okY || y.median <= 0 {
		return f, false
	}
	r := x.median / y.median
	return figure{r, r, r}, true
}

// number is v with three digits that count.
func number(v float64) string {
	size := math.Abs(v)
	switch {
	case size == 0:
		return "0"
	case size >= 999.5:
		return thousands(int64(math.Round(v)))
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

func thousands(n int64) string {
	switch {
	case n < 0:
		return "-" + thousands(-n)
	case n < 1000:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// in is the median in a unit.
func (f figure) in(u unit) string { return strings.TrimSpace(number(f.median*u.scale) + " " + u.name) }

// span is the range in a unit, "" when there is none.
func (f figure) span(u unit) string {
	if f.least == f.most {
		return ""
	}
	return fmt.Sprintf("%s – %s", number(f.least*u.scale), number(f.most*u.scale))
}

// ranged is the median with its range.
func (f figure) ranged(u unit) string {
	if s := f.span(u); s != "" {
		return fmt.Sprintf("%s [%s]", f.in(u), s)
	}
	return f.in(u)
}

// unit is how a metric is shown: its value times scale.
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
	kilo   = unit{"KB", 1e-3} // of 1000 bytes
)
