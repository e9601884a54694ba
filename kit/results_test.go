package kit

import (
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// TestResults counts an operation with each kind of error.
func TestResults(t *testing.T) {
	r := NewResults("operations_total", "Operations")
	count := func(err error) { r.Count("put", &err) }
	count(nil)
	count(fmt.Errorf("put: %w", queue.ErrNotReplicated))
	count(&wire.DetailedError{Err: wire.Errorf(wire.Conflict, "taken"), Data: 1})
	count(errors.New("the store does not answer"))
	registry := prometheus.NewRegistry()
	registry.MustRegister(r)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
	}
	if want := "map[put conflict:1 put ok:2 put unavailable:1]"; fmt.Sprint(got) != want {
		t.Errorf("counted %v, want %s", got, want)
	}
}
