package broker

import (
	"context"

	"switchboard/broker/api"
	"switchboard/broker/delivery"
	"switchboard/broker/hub"
	"switchboard/broker/presence"
	"switchboard/broker/session"
	"switchboard/registry"
)

// Registry holds the methods of a registry that the broker and its packages call.
// [registry.Redis] and [registry.Memory] implement it.
type Registry interface {
	serverRegistry
	api.Registry
	delivery.Registry
	hub.Registry
	presence.Store
	session.Registry
}

// serverRegistry holds the methods of a registry that membership calls.
type serverRegistry interface {
	Join(ctx context.Context, s registry.Server) error
	Beat(ctx context.Context, s registry.Server) error
	Leave(ctx context.Context, server string) error
	Servers(ctx context.Context) ([]registry.Server, error)
	Listed(ctx context.Context) ([]string, error)
	Died(ctx context.Context) ([]registry.Death, error)
	Revoke(ctx context.Context, v registry.Revocation) (registry.Revoked, error)
	RevokedSince(ctx context.Context, since int64) (users []string, next int64, more bool, err error)
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
