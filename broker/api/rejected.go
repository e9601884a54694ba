package api

import (
	"errors"

	"switchboard/internal/wire"
)

// The reasons that Options.Rejected receives.
const (
	RejectedMissing = "no API key"
	RejectedUnknown = "an unknown API key"
	RejectedScope   = "an API key without the scope"
)

// rejected reports a call that Authorize refused with err.
func (a api) rejected(err error, authorization, address string) {
	if a.Rejected == nil {
		return
	}
	reason := RejectedUnknown
	if wireErr, ok := errors.AsType[*wire.Error](err); ok && wireErr.Code == wire.Forbidden {
		reason = RejectedScope
	} else if authorization == "" {
		reason = RejectedMissing
	}
	a.Rejected(reason, address)
}
