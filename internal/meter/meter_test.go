package meter

import (
	"context"
	"testing"
	"time"

	"switchboard/internal/allocs"
)

func TestMeter(t *testing.T) {
	Add(t.Context(), 1) // does nothing
	var other, m Meter
	ctx := With(With(t.Context(), &other), &m)
	derived, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	Add(ctx, 2)
	Add(derived, 3)
	Add(With(derived, nil), 5)
	m.Raise(4)
	(*Meter)(nil).Raise(7)
	if m.Bytes() != 5 || other.Bytes() != 0 {
		t.Errorf("%d and %d bytes, want 5 and 0", m.Bytes(), other.Bytes())
	}
	if m.Raise(9); m.Bytes() != 9 || m.Read() != 5 {
		t.Errorf("%d bytes, want at least 9; %d read", m.Bytes(), m.Read())
	}
	if Of(t.Context()) != nil || Of(derived) != &m || With(t.Context(), nil) != t.Context() {
		t.Error("the Meter of a context is another one")
	}
}

func TestAllocs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := new(Meter)
	metered := With(ctx, m)
	allocs.Test(t, []allocs.Case{
		allocs.Of("without a Meter", 0, func() { Add(ctx, 7) }),
		allocs.Of("with a Meter", 0, func() { Add(metered, 7) }),
		allocs.Of("a metered context", 1, func() { With(ctx, m) }),
	})
}
