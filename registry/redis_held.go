package registry

import (
	"context"
	"fmt"
	"slices"

	"switchboard/internal/redispipe"
)

// HoldClients adds the clients to the server's s_c_. A server calls it before it binds anything for
// the clients, so that cleaning up after the server finds them. It returns ErrDead if the server
// was declared dead. After an error some of the clients may have been added.
func (r *Redis) HoldClients(ctx context.Context, server string, clients []string) error {
	for chunk := range slices.Chunk(clients, redispipe.MaxNames) {
		if err := r.hold(ctx, r.keys.heldClients(server), server, chunk...); err != nil {
			return fmt.Errorf("hold %d clients: %w", len(clients), err)
		}
	}
	return nil
}

// HoldChannels adds the channels to the server's s_ch_ again. It is for a server that has bound
// them: a failover may have lost these entries, and not those in ch_. It returns ErrDead if the
// server was declared dead. After an error some of the channels may have been added.
func (r *Redis) HoldChannels(ctx context.Context, server string, channels []string) error {
	for chunk := range slices.Chunk(channels, redispipe.MaxNames) {
		if err := r.hold(ctx, r.keys.heldChannels(server), server, chunk...); err != nil {
			return fmt.Errorf("hold %d channels: %w", len(channels), err)
		}
	}
	return nil
}

// ListChannels is HoldChannels, and also adds the channels to the list of channels again. In a
// Cluster, the channels of a chunk may be in sets of all masters: so call it only for channels that
// are listed where entries may be lost, see ListedIn.
func (r *Redis) ListChannels(ctx context.Context, server string, channels []string) error {
	for chunk := range slices.Chunk(channels, redispipe.MaxNames) {
		err := r.hold(ctx, r.keys.heldChannels(server), server, chunk...)
		if err == nil {
			err = r.changeLists(ctx, "sadd", chunk, r.listForFormer.Load()).err()
		}
		if err != nil {
			return fmt.Errorf("list %d channels: %w", len(channels), err)
		}
	}
	return nil
}

// DropClient removes the client from the server's s_c_.
func (r *Redis) DropClient(ctx context.Context, server, client string) error {
	if err := r.dropClient.Do(ctx, server, client); err != nil {
		return fmt.Errorf("drop client %s: %w", client, err)
	}
	return nil
}

// HeldChannels returns up to n names of the server's s_ch_. It returns none only if s_ch_ is empty.
// A caller unbinds them and calls again.
func (r *Redis) HeldChannels(ctx context.Context, server string, n int) ([]string, error) {
	channels, err := r.randomNames(ctx, r.keys.heldChannels(server), n)
	if err != nil {
		return nil, fmt.Errorf("channels held by server %s: %w", server, err)
	}
	return channels, nil
}

// HeldClients returns up to n names of the server's s_c_. It returns none only if s_c_ is empty.
// A caller drops them and calls again.
func (r *Redis) HeldClients(ctx context.Context, server string, n int) ([]string, error) {
	clients, err := r.randomNames(ctx, r.keys.heldClients(server), n)
	if err != nil {
		return nil, fmt.Errorf("clients held by server %s: %w", server, err)
	}
	return clients, nil
}

// ClientPage returns about limit clients of the server's s_c_, from cursor on. An empty cursor
// begins the list. next is empty after the last page, and only then: a page may have no clients. A
// client may be returned twice; a client that is in the set all the time is returned at least once.
// A client is added before it is bound, so it may not be online yet. ClientPage returns
// ErrBadCursor if the cursor is malformed.
func (r *Redis) ClientPage(ctx context.Context, server, cursor string, limit int) (clients []string, next string, err error) {
	clients, next, err = r.scanSet(ctx, r.keys.heldClients(server), "", cursor, limit)
	if err != nil {
		return nil, "", fmt.Errorf("clients of server %s: %w", server, err)
	}
	return clients, next, nil
}

// hold adds names to key, s_ch_ or s_c_ of the server.
func (r *Redis) hold(ctx context.Context, key, server string, names ...string) error {
	alive, err := r.pipe.EvalInt(ctx, holdScript, []string{key, r.keys.tombstone(server)}, anys(names)...)
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

// randomNames returns up to n random names of a set. It does not scan: a scan of a set that shrank
// may return nothing although names are left, and the cleanup would end there. A random choice also
// gets past a name that cannot be cleaned up.
func (r *Redis) randomNames(ctx context.Context, key string, n int) ([]string, error) {
	return r.names(ctx, "srandmember", key, max(n, 1))
}
