package room

import (
	"context"
	"sync"
)

// makers is the rooms that quick joins of this process are making.
type makers struct {
	mu    sync.Mutex               // guards the field below
	rooms map[string]chan struct{} // closed when the room was made, or could not be made
}

// begin returns the function that ends the making of a room, or nil after another caller has ended
// it.
func (m *makers) begin(ctx context.Context, id string) (end func(), err error) {
	m.mu.Lock()
	other := m.rooms[id]
	if other == nil {
		done := make(chan struct{})
		if m.rooms == nil {
			m.rooms = map[string]chan struct{}{}
		}
		m.rooms[id] = done
		m.mu.Unlock()
		return func() {
			m.mu.Lock()
			delete(m.rooms, id)
			m.mu.Unlock()
			close(done)
		}, nil
	}
	m.mu.Unlock()
	select {
	case <-other:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
