package registry

import (
	"context"
	"fmt"
	"slices"

	"switchboard/internal/redispipe"
)

// HoldClients implements [Registry].
func (r *Redis) HoldClients(ctx context.Context, server string, clients []string) error {
	for some := range slices.Chunk(clients, redispipe.MaxNames) {
		if err := r.hold(ctx, r.keys.heldClients(server), server, some...); err != nil {
			return fmt.Errorf("hold %d clients: %w", len(clients), err)
		}
	}
	return nil
}

// DropClient implements [Registry].
func (r *Redis) DropClient(ctx context.Context, server, client string) error {
	if err := r.dropping.Do(ctx, server, client); err != nil {
		return fmt.Errorf("drop client %s: %w", client, err)
	}
	return nil
}

// HeldChannels implements [Registry].
func (r *Redis) HeldChannels(ctx context.Context, server string, n int) ([]string, error) {
	channels, err := r.someOf(ctx, r.keys.heldChannels(server), n)
	if err != nil {
		return nil, fmt.Errorf("channels held by server %s: %w", server, err)
	}
	return channels, nil
}

// HeldClients implements [Registry].
func (r *Redis) HeldClients(ctx context.Context, server string, n int) ([]string, error) {
	clients, err := r.someOf(ctx, r.keys.heldClients(server), n)
	if err != nil {
		return nil, fmt.Errorf("clients held by server %s: %w", server, err)
	}
	return clients, nil
}

func (r *Redis) hold(ctx context.Context, key, server string, names ...string) error {
	alive, err := r.eval(ctx, holdScript, []string{key, r.keys.tombstone(server)}, anys(names)...)
	if err == nil && alive == 0 {
		err = ErrDead
	}
	return err
}

func anys(names []string) []any {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	return list
}

// someOf draws at random instead of scanning: a scan of a set that shrank may answer
// with nothing although something is left, and the cleaning would end there. The draw
// also gets past a name that cannot be cleaned.
func (r *Redis) someOf(ctx context.Context, key string, n int) ([]string, error) {
	return r.names(ctx, "srandmember", key, max(n, 1))
}
