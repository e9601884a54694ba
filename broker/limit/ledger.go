package limit

import (
	"context"
	"math/rand/v2"
	"time"

	"switchboard/registry"
)

// Ledger adds up what senders have used on all servers. registry.Redis implements it.
type Ledger interface {
	Spend(ctx context.Context, list []registry.Spending) []registry.SpendOutcome
}

const (
	// A server reports what a sender has stored in steps of this part of the burst. All servers
	// together may exceed a budget by one step each.
	byteSteps, channelSteps = 64, 4
	// maxByteStep is the largest step of bytes.
	maxByteStep = 1 << 20
	// quantumPart is the part of a step that is reported with certainty when a bucket is full again.
	quantumPart = 16
	// reportTimeout bounds a report, since a publish waits for it.
	reportTimeout = 500 * time.Millisecond
	// reportPause is the time without reports after one that failed.
	reportPause = time.Second
)

// amounts are tokens of the two rates.
type amounts struct{ bytes, channels int }

// steps returns the steps in which a server reports.
func (r SenderRates) steps() amounts {
	return amounts{min(maxByteStep, r.Bytes.part(byteSteps)), r.Channels.part(channelSteps)}
}

// shared reports whether a sender can have connections to several servers. One connection through a
// proxy has only one server.
func (s Sender) shared() bool { return s.user != "" || s.address.IsValid() && s.address.Port() == 0 }

// spending returns a report of what a sender has used.
func (s *Senders) spending(sender Sender, a amounts) registry.Spending {
	of := func(r Rate, n int) registry.Spent {
		return registry.Spent{Cost: time.Duration(r.cost(n)), Most: time.Duration(r.window + r.debt)}
	}
	v := registry.Spending{User: sender.user, Bytes: of(s.rates.Bytes, a.bytes), Channels: of(s.rates.Channels, a.channels)}
	if sender.user == "" {
		v.Address = sender.address.Addr().String()
	}
	return v
}

// reportsNow reports whether a step must be reported before a publish of that many bytes.
func (s *Senders) reportsNow(sender Sender, use senderUse, bytes int, now time.Duration) bool {
	due := use.unreported
	return s.ledger != nil && (due.bytes > 0 && due.bytes+bytes > s.step.bytes || due.channels >= s.step.channels) &&
		sender.shared() && now >= time.Duration(s.pausedUntil.Load())
}

// reportLocked reports what a sender has stored here, and learns what it has stored on all servers.
// It releases the lock while it waits. If the store does not answer, the sender goes on with the
// buckets of this server, and its use is reported later.
func (s *Senders) reportLocked(ctx context.Context, sh *senderShard, sender Sender) {
	use := sh.entries[sender]
	reported := use.unreported
	use.unreported = amounts{}
	sh.entries[sender] = use
	sh.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	answer := s.ledger.Spend(ctx, []registry.Spending{s.spending(sender, reported)})[0]
	cancel()
	sh.mu.Lock()
	use = sh.entries[sender]
	now := time.Since(s.epoch)
	if answer.Err != nil {
		s.pausedUntil.Store(int64(now + reportPause))
		use.unreported.bytes += reported.bytes
		use.unreported.channels += reported.channels
	} else {
		use.bytes.raise(s.rates.Bytes, now+answer.Bytes, use.unreported.bytes)
		use.channels.raise(s.rates.Channels, now+answer.Channels, use.unreported.channels)
	}
	sh.setLocked(sender, use)
}

// rest returns what is reported of a sender whose buckets are full again. Small amounts cost no
// call: they are reported as a quantum, with a probability that makes the mean exact.
func (s *Senders) rest(sender Sender, use senderUse) (report registry.Spending, due bool) {
	if s.ledger == nil || !sender.shared() {
		return registry.Spending{}, false
	}
	a := amounts{
		roundToQuantum(use.unreported.bytes, s.step.bytes/quantumPart),
		roundToQuantum(use.unreported.channels, s.step.channels/quantumPart),
	}
	return s.spending(sender, a), a != amounts{}
}

// roundToQuantum returns n if it is at least quantum. Otherwise it returns quantum or 0, and n in
// the mean.
func roundToQuantum(n, quantum int) int {
	switch {
	case n >= quantum:
		return n
	case n > 0 && rand.IntN(quantum) < n:
		return quantum
	default:
		return 0
	}
}

// reportAll returns the report of a list, or nil if it is empty.
func (s *Senders) reportAll(list []registry.Spending) func(context.Context) {
	if len(list) == 0 {
		return nil
	}
	return func(ctx context.Context) { s.ledger.Spend(ctx, list) } // if it fails, one step each is forgotten
}
