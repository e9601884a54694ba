package broker

import (
	"context"

	"switchboard/broker/api"
	"switchboard/broker/delivery"
	"switchboard/broker/hub"
	"switchboard/broker/limit"
	"switchboard/broker/member"
	"switchboard/broker/presence"
	"switchboard/broker/session"
	"switchboard/registry"
)

// Registry holds the methods of a registry that the broker and its packages call.
// [registry.Redis] and [registry.Memory] implement it.
type Registry interface {
	member.Registry
	api.Registry
	delivery.Registry
	hub.Registry
	presence.Store
	session.Registry
	limit.Ledger
	Died(ctx context.Context) ([]registry.Death, error)
	Revoke(ctx context.Context, v registry.Revocation) (registry.Revoked, error)
}

// Queue holds the methods of a queue that the broker's packages call. [queue.Redis] and
// [queue.Memory] implement it.
type Queue interface {
	api.Queue
	delivery.Queue
	delivery.States
	hub.Queue
	session.Queue
}
