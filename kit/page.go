package kit

import "switchboard/internal/wire"

// The sizes of pages. Those of HTTP calls are the same as of all lists of the API.
const (
	DefaultPage   = 100
	MaxPage       = 1000
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
