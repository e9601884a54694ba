// Package meter counts how many bytes a call reads from the store, so that the call can be charged
// for them. The count travels in the context of the call: [With] adds it, and all implementations
// of the stores call [Add] with what they return. With another context, Add does nothing.
package meter

import (
	"context"
	"sync/atomic"
)

// Meter counts the bytes that were read. A nil Meter counts nothing.
type Meter struct {
	read  atomic.Int64
	least atomic.Int64 // see Raise
}

// Bytes returns how many bytes count: those that were read, or more by Raise.
func (m *Meter) Bytes() int { return int(max(m.read.Load(), m.least.Load())) }

// Read returns how many bytes were read from the store.
func (m *Meter) Read() int { return int(m.read.Load()) }

// Add counts n more bytes.
func (m *Meter) Add(n int) {
	if m != nil {
		m.read.Add(int64(n))
	}
}

// Raise makes Bytes return at least n: for a call that gets as much from the memory of the broker.
func (m *Meter) Raise(n int) {
	for m != nil {
		if old := m.least.Load(); old >= int64(n) || m.least.CompareAndSwap(old, int64(n)) {
			return
		}
	}
}

// Delivered returns how many of n bytes count if they are messages of a channel that are written to
// the client: an eighth. A client that was away for long receives many, and may go on at once.
func Delivered(n int) int { return n / 8 }

// key is the key of the Meter in a context.
type key struct{}

// metered is a context with a Meter.
type metered struct {
	context.Context
	meter *Meter
}

// Value implements context.Context.
func (m *metered) Value(k any) any {
	if k == (key{}) {
		return m.meter
	}
	return m.Context.Value(k)
}

// With returns a context whose reads m counts, and not the Meter of ctx. A nil m counts nothing:
// it is for work of a call that others have caused.
func With(ctx context.Context, m *Meter) context.Context {
	if m == nil && Of(ctx) == nil {
		return ctx
	}
	return &metered{ctx, m}
}

// Of returns the Meter of a context, or nil.
func Of(ctx context.Context) *Meter {
	m, _ := ctx.Value(key{}).(*Meter)
	return m
}

// Add counts n more bytes, if ctx has a Meter.
func Add(ctx context.Context, n int) { Of(ctx).Add(n) }
