package kit

import (
	"errors"

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

// Count counts an operation. One that is stored but not replicated is ok. An error without a code
// is unavailable.
func (r Results) Count(operation string, err error) {
	result := "ok"
	if e, ok := errors.AsType[*wire.Error](err); ok {
		result = string(e.Code)
	} else if err != nil && !errors.Is(err, queue.ErrNotReplicated) {
		result = string(wire.Unavailable)
	}
	r.WithLabelValues(operation, result).Inc()
}
