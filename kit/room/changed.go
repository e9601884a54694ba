package room

import "context"

// due notes that a room is about to change, so that the round computes its card even if this
// process ends before changed.
func (r *Rooms) due(ctx context.Context, id string) error { return nil }

// changed computes the card of a room after a change.
func (r *Rooms) changed(ctx context.Context, id string) {}
