package work

import (
	"context"
	"sync"
	"time"
)

// Deadlines makes contexts with a timeout, for calls that need one. Callers at about the same time
// share a context, so no caller can cancel it. A context for each call, with a timer and a channel,
// took a twelfth of the CPU of a client that connects and subscribes.
type Deadlines struct {
	timeout time.Duration

	mu      sync.Mutex // guards the fields below
	ctx     context.Context
	renewAt time.Time // from then on, Context makes a new one
}

// NewDeadlines returns Deadlines whose contexts end after timeout, or up to a sixteenth later.
func NewDeadlines(timeout time.Duration) *Deadlines { return &Deadlines{timeout: timeout} }

// Context returns a context that ends after the timeout, or up to a sixteenth later.
func (d *Deadlines) Context() context.Context {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || !now.Before(d.renewAt) {
		slack := d.timeout / 16
		ctx, end := context.WithTimeout(context.Background(), d.timeout+slack)
		context.AfterFunc(ctx, end) // go vet requires that end is called
		d.ctx, d.renewAt = ctx, now.Add(slack)
	}
	return d.ctx
}
