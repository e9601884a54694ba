package cluster

import (
	"context"
	"sync"

	"switchboard/internal/wire"
	"switchboard/registry"
)

// revokeCall is the body of callRevoke. The result is the number of connections that were closed.
type revokeCall struct {
	Clients []string         `json:"clients"`
	Before  int64            `json:"before"` // Unix ms
	Reason  wire.CloseReason `json:"reason"`
}

// Revoke implements api.Cluster. Connections that used the tokens are closed as expired: a client
// that gets another token comes back with it. It calls each server that has a client of the user. A
// server that the call does not reach reads the list of revocations at its next beat.
func (c *Cluster) Revoke(ctx context.Context, v registry.Revocation) (r registry.Revoked, closed, pending int, err error) {
	if !c.opts.Tokens {
		return r, 0, 0, wire.Errorf(wire.BadRequest, "this broker takes no tokens, so there are none to revoke")
	}
	r, err = c.opts.Registry.Revoke(ctx, v)
	if r.Before == 0 {
		return r, 0, 0, err
	}
	var mu sync.Mutex // guards closed
	pending = callHolders(r.Clients, func(server string, list []string) error {
		n, failed := c.closeRevoked(ctx, server, revokeCall{list, r.Before, wire.CloseExpired})
		mu.Lock()
		defer mu.Unlock()
		closed += n
		return failed
	})
	return r, closed, pending, err
}

// closeRevoked closes the connections on a server that used revoked tokens.
func (c *Cluster) closeRevoked(ctx context.Context, server string, q revokeCall) (closed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if c.isSelf(server) {
		return c.revokeHere(ctx, q), nil
	}
	err = c.call(ctx, server, callRevoke, q, &closed)
	return closed, err
}

func (c *Cluster) revokeHere(ctx context.Context, q revokeCall) (closed int) {
	return c.parts.Sessions.Revoke(ctx, q.Clients, q.Before, q.Reason)
}
