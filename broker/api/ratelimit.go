package api

import (
	"switchboard/broker/delivery"
	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

// takeRate takes one token for each push from the rate limit of an API key. It accepts all pushes
// or none, so that the backend can repeat a refused call unchanged.
func (a api) takeRate(rate *limit.SharedBucket, pushes []delivery.Push) error {
	if len(pushes) == 0 {
		return nil
	}
	wait := rate.Take(len(pushes))
	if wait == 0 {
		return nil
	}
	for _, p := range pushes {
		a.CountPush(pushKind(p), string(wire.RateLimited))
	}
	return &wire.Error{Code: wire.RateLimited, Message: "this API key exceeds its push rate; nothing of this call is stored", After: wait}
}

// pushKind returns the kind of a push's target, as result.kind does.
func pushKind(p delivery.Push) string {
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
