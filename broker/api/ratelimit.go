package api

import (
	"switchboard/broker/delivery"
	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

// spend takes pushes, of which each target is one, of what an API key may push. All of them pass or none, so that what is
// refused can be sent again as it is.
func (a api) spend(by *limit.SharedBucket, pushes []delivery.Push) error {
	if len(pushes) == 0 {
		return nil
	}
	wait := by.Take(len(pushes))
	if wait == 0 {
		return nil
	}
	for _, p := range pushes {
		a.CountPush(kindOf(p), string(wire.RateLimited))
	}
	return &wire.Error{Code: wire.RateLimited, Message: "this API key pushes more than it may; nothing of this call is stored", After: wait}
}

// kindOf is the kind of a push's target, as result.kind.
func kindOf(p delivery.Push) string {
	switch {
	case p.Kind == delivery.User:
		return "user"
	case p.Kind == delivery.Client:
		return "client"
	case p.Name == wire.AllChannel:
		return "all"
	}
	return "channel"
}
