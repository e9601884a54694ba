package api

import (
	"errors"

	"switchboard/internal/wire"
)

// The reasons for Options.Rejected.
const (
	RejectedMissing = "no API key"
	RejectedUnknown = "an unknown API key"
	RejectedScope   = "an API key without the scope"
)

// rejected reports a call whose API key is not good.
func (a api) rejected(err error, authorization, address string) {
	if a.Rejected == nil {
		return
	}
	reason := RejectedUnknown
	if own, ok := errors.AsType[*wire.Error](err); ok && own.Code == wire.Forbidden {
		reason = RejectedScope
	} else if authorization == "" {
		reason = RejectedMissing
	}
	a.Rejected(reason, address)
}
