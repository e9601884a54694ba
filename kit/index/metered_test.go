package index

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/meter"
)

// TestMetered checks that what a call reads counts in its Meter.
func TestMetered(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		for n := range 5 {
			put(t, i, Card{ID: fmt.Sprint(n), Version: 1, Lists: map[string]int64{"all": 1}, Data: []byte(strings.Repeat("x", 1000))})
		}
		m := new(meter.Meter)
		ctx := meter.With(t.Context(), m)
		if _, err := i.List(ctx, Query{List: "all"}); err != nil {
			t.Fatal(err)
		}
		if _, err := i.Get(ctx, "1", "2", "9"); err != nil {
			t.Fatal(err)
		}
		if n := m.Bytes(); n < 7000 || n > 8000 {
			t.Errorf("%d bytes count, want about 7000", n)
		}
	})
}
