package work

import (
	"context"
	"sync"
	"time"
)

// Deadlines gives out contexts that end by themselves, for calls that must. Whoever asks at about the same time
// shares one: a context of its own with timer and channel was a twelfth of what a client cost that connects and
// subscribes. Nobody can end one early.
type Deadlines struct {
	after time.Duration

	mu    sync.Mutex // guards the fields below
	ctx   context.Context
	stale time.Time // from then on the next one is given out
}

// NewDeadlines returns Deadlines whose contexts end after the given time, or up to a sixteenth later.
func NewDeadlines(after time.Duration) *Deadlines { return &Deadlines{after: after} }

// Context is one that was not given out for longer than that sixteenth.
func (d *Deadlines) Context() context.Context {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || !now.Before(d.stale) {
		slack := d.after / 16
		ctx, end := context.WithTimeout(context.Background(), d.after+slack)
		context.AfterFunc(ctx, end)
		d.ctx, d.stale = ctx, now.Add(slack)
	}
	return d.ctx
}
