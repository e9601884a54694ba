package broker

import (
	"context"
	"encoding/json"
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
// that gets another token comes back with it.
func (b *Broker) Revoke(ctx context.Context, v registry.Revocation) (r registry.Revoked, closed, pending int, err error) {
	return b.revoke(ctx, v, wire.CloseExpired)
}

// revoke stores the revocation, and then calls each server that has a client of the user. A server
// that the call does not reach reads the list of revocations at its next beat.
func (b *Broker) revoke(ctx context.Context, v registry.Revocation, reason wire.CloseReason) (r registry.Revoked, closed, pending int, err error) {
	if b.opts.Access.Tokens.Open() {
		return r, 0, 0, wire.Errorf(wire.BadRequest, "this broker takes no tokens, so there are none to revoke")
	}
	r, err = b.opts.Store.Registry.Revoke(ctx, v)
	if r.Before == 0 {
		return r, 0, 0, err
	}
	var mu sync.Mutex // guards closed
	pending = callHolders(r.Clients, func(server string, list []string) error {
		n, failed := b.closeRevoked(ctx, server, revokeCall{list, r.Before, reason})
		mu.Lock()
		defer mu.Unlock()
		closed += n
		return failed
	})
	return r, closed, pending, err
}

// closeRevoked closes the connections on a server that used revoked tokens.
func (b *Broker) closeRevoked(ctx context.Context, server string, q revokeCall) (closed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if server == b.ID() {
		return b.sessions.Revoke(ctx, q.Clients, q.Before, q.Reason), nil
	}
	err = b.call(ctx, server, callRevoke, q, &closed)
	return closed, err
}

// handleRevoke handles callRevoke.
func (b *Broker) handleRevoke(ctx context.Context, body json.RawMessage) (any, error) {
	var q revokeCall
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	return b.sessions.Revoke(ctx, q.Clients, q.Before, q.Reason), nil
}
