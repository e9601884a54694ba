package leader

import (
	"context"
	"time"
)

const (
	// mostFailed is how many rounds in a row may fail until the leader gives the lease back.
	mostFailed = 3
	// pause is how long it leaves the lease to others then: all of them look meanwhile.
	pause = 2 * lookEvery
	// slowRound is the duration of a round above which the leader asks for help.
	slowRound = 2 * time.Second
)

// Lease is the lease of one kind of rounds. All methods of nil work: then this process makes the
// rounds alone.
type Lease struct {
	all *Leases
	key string

	// Guarded by all.mu:
	until     time.Time // when the lease of this process ends; zero if it has none
	free      bool      // no process has the lease
	help      bool      // its leader, another process, asks for help
	slow      bool      // this process asks for help
	failed    int       // rounds in a row that failed here
	givesBack bool
	pausedTo  time.Time // the process does not take the lease until then
}

// Held reports whether this process has the lease.
func (l *Lease) Held() bool {
	if l == nil {
		return true
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.heldLocked()
}

func (l *Lease) heldLocked() bool { return l.all.now().Before(l.until) }

// Leads reports whether this process has the lease, or cannot tell which process has it.
func (l *Lease) Leads() bool {
	if l == nil {
		return true
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.heldLocked() || l.blindLocked()
}

func (l *Lease) blindLocked() bool { return l.all.now().Sub(l.all.answered) > blindAfter }

// IsDue reports whether this process has to make a round: it has the lease, or helps, or cannot
// tell which process has it.
func (l *Lease) IsDue() bool {
	if l == nil {
		return true
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.heldLocked() || l.help || l.blindLocked()
}

// Do makes a round if it is due, or if this process has work of its own for it.
func (l *Lease) Do(ctx context.Context, own bool, round func(context.Context) error) error {
	if !own && !l.IsDue() {
		return nil
	}
	begun := time.Now()
	err := round(ctx)
	if l != nil && ctx.Err() == nil {
		l.ended(time.Since(begun), err)
	}
	return err
}

// ended notes how long a round took, and whether it failed.
func (l *Lease) ended(took time.Duration, err error) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.slow = took > slowRound && err == nil // a store that does not answer needs no help
	if err == nil || !l.heldLocked() {
		l.failed = 0
		return
	}
	if l.failed++; l.failed < mostFailed {
		return
	}
	l.failed, l.slow, l.givesBack = 0, false, true
	l.until, l.pausedTo = time.Time{}, l.all.now().Add(pause)
	select {
	case l.all.wake <- struct{}{}:
	default:
	}
}

// isFree reports whether this process should take the lease.
func (l *Lease) isFree() bool {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.free && !l.all.now().Before(l.pausedTo)
}

// asks returns 1 if this process asks for help, else 0.
func (l *Lease) asks() int {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.slow {
		return 1
	}
	return 0
}
