package kit

import (
	"context"
	"slices"

	"switchboard/broker/api"
	"switchboard/internal/meter"
	"switchboard/internal/wire"
	"switchboard/kit/index"
)

// The sizes of pages. Those of HTTP calls are the same as of all lists of the API.
const (
	DefaultPage   = api.DefaultPage
	MaxPage       = api.MaxPage
	MaxClientPage = 100 // of a method that a client calls
)

// PageLimit checks the most items of a page, for the backend or for a client, and replaces 0 by
// DefaultPage. A limit is never reduced.
func PageLimit(limit *int, backend bool) error { return LimitOr(limit, DefaultPage, backend) }

// LimitOr is PageLimit with another default.
func LimitOr(limit *int, fallback int, backend bool) error {
	most := MaxClientPage
	if backend {
		most = MaxPage
	}
	if *limit < 0 || *limit > most {
		return wire.Errorf(wire.BadRequest, "limit: %d is not within 1 and %d", *limit, most)
	}
	if *limit == 0 {
		*limit = fallback
	}
	return nil
}

// Paged is the part of a request that selects a page of a list.
type Paged struct {
	Cursor string `json:"cursor" query:"cursor"` // of the page before, or ""
	Limit  int    `json:"limit" query:"limit" range:"page"`
}

const (
	// ClientBytes is about how many bytes the store sends for one page of a client. The page then
	// ends with a cursor, also if it has less than its limit.
	ClientBytes = 16 << 10
	// BackendBytes is the same for a page of documents that a backend reads.
	BackendBytes = 256 << 10
	// firstBatch is how many documents of a page are read first, and firstOfBackend for a backend. The
	// others are as many as fit the page if they are like those.
	firstBatch     = 2
	firstOfBackend = 25
)

// BytesLeft returns how many bytes the store may still send for the call of ctx, about. bounded is
// false for the calls of backends, which have no bound.
func BytesLeft(ctx context.Context) (n int, bounded bool) {
	m := meter.Of(ctx)
	if m == nil {
		return 0, false
	}
	return max(0, ClientBytes-m.Bytes()), true
}

// NextBatch returns how many of the documents that are left to read next, after done documents.
// It returns 0 if the page is full. The calls of backends have no bound.
func NextBatch(ctx context.Context, left, done int) int {
	m := meter.Of(ctx)
	if m == nil {
		return left
	}
	return nextBatch(m, ClientBytes, firstBatch, left, done)
}

// nextBatch is NextBatch for a page of bound bytes, of which first documents are read first.
func nextBatch(m *meter.Meter, bound, first, left, done int) int {
	used := m.Bytes()
	switch {
	case done == 0:
		return min(left, first)
	case used >= bound:
		return 0
	}
	return min(left, max(1, (bound-used)*done/max(1, used)))
}

// ReadPage reads a page of a list, and the documents of its cards, for the backend or for a client,
// see [PageLimit]. read returns one document for each card; those that keep refuses are left out. A
// page ends after ClientBytes, or BackendBytes for a call of a backend. next is the cursor of the
// next page, or "".
func ReadPage[T any](
	ctx context.Context, i index.Index, q index.Query, backend bool, read func(context.Context, []index.Card) ([]T, error), keep func(T) bool,
) (list []T, next string, err error) {
	if err := PageLimit(&q.Limit, backend); err != nil {
		return nil, "", err
	}
	m, bound, first := meter.Of(ctx), ClientBytes, firstBatch
	if m == nil {
		m, bound, first = new(meter.Meter), BackendBytes, firstOfBackend
		ctx = meter.With(ctx, m)
	}
	list = []T{}
	for limit, done := q.Limit, 0; ; {
		if q.Limit = nextBatch(m, bound, first, limit-done, done); q.Limit == 0 {
			return list, q.Cursor, nil
		}
		p, err := i.List(ctx, q)
		if err != nil {
			return nil, "", err
		}
		documents, err := read(ctx, p.Cards)
		if err != nil {
			return nil, "", err
		}
		done += len(documents)
		list = append(list, slices.DeleteFunc(documents, func(one T) bool { return !keep(one) })...)
		if q.Cursor = p.Next; q.Cursor == "" {
			return list, "", nil
		}
	}
}
