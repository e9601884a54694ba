package redistest

import (
	"context"
	"fmt"
	"net"
)

// MoveSlot moves the slot of a key from one master, which has it, to another. It calls halfway when
// the first of the keys has been moved and the others have not: commands with several keys of the
// slot then fail with TRYAGAIN, and those whose keys are gone are redirected with ASK.
func (c *Cluster) MoveSlot(ctx context.Context, key string, from, to *Server, halfway func()) error {
	slot, err := from.Do(ctx, "cluster", "keyslot", key).Int()
	if err != nil {
		return err
	}
	ids := map[*Server]string{}
	for _, s := range []*Server{from, to} {
		if ids[s], err = s.Do(ctx, "cluster", "myid").Text(); err != nil {
			return err
		}
	}
	if err := to.Do(ctx, "cluster", "setslot", slot, "importing", ids[from]).Err(); err != nil {
		return fmt.Errorf("import slot %d to %s: %w", slot, to.Addr, err)
	}
	if err := from.Do(ctx, "cluster", "setslot", slot, "migrating", ids[to]).Err(); err != nil {
		return fmt.Errorf("migrate slot %d from %s: %w", slot, from.Addr, err)
	}
	host, port, err := net.SplitHostPort(to.Addr)
	if err != nil {
		return err
	}
	for moved := 0; ; moved++ {
		keys, err := from.Do(ctx, "cluster", "getkeysinslot", slot, 1).StringSlice()
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		if err := from.Do(ctx, "migrate", host, port, keys[0], 0, startTimeout.Milliseconds()).Err(); err != nil {
			return fmt.Errorf("move %s from %s to %s: %w", keys[0], from.Addr, to.Addr, err)
		}
		if moved == 0 {
			halfway()
		}
	}
	// The new owner first: until it knows, it would redirect back.
	for _, s := range append([]*Server{to, from}, c.Masters...) {
		if err := s.Do(ctx, "cluster", "setslot", slot, "node", ids[to]).Err(); err != nil {
			return fmt.Errorf("assign slot %d on %s: %w", slot, s.Addr, err)
		}
	}
	return nil
}
