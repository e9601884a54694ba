package limit

import (
	"context"
	"time"

	"switchboard/registry"
)

// Used is how much of a rate a sender has used and not yet refilled, and the burst. Max is 0 if
// there is no limit.
type Used struct{ Used, Max int }

// StoredUse is what a sender has stored lately.
type StoredUse struct {
	Bytes    Used
	Channels Used // that it has created
}

// Stored returns how much a sender has used of what it may store, as far as this server knows: what
// all servers have reported, or what was used here, if that is more. It changes nothing.
func (s *Senders) Stored(ctx context.Context, sender Sender) (StoredUse, error) {
	if s == nil {
		return StoredUse{}, nil
	}
	var owed registry.Owed
	if s.ledger != nil && sender.shared() {
		answer := s.ledger.Spend(ctx, []registry.Spending{s.spending(sender, amounts{})})[0]
		if answer.Err != nil {
			return StoredUse{}, answer.Err
		}
		owed = answer.Owed
	}
	sh, now := s.shard(sender), time.Since(s.epoch)
	sh.mu.Lock()
	use := sh.entries[sender]
	sh.mu.Unlock()
	use.bytes.raise(s.rates.Bytes, now+owed.Bytes, use.unreported.bytes)
	use.channels.raise(s.rates.Channels, now+owed.Channels, use.unreported.channels)
	return StoredUse{use.bytes.used(s.rates.Bytes, now), use.channels.used(s.rates.Channels, now)}, nil
}

// used returns what a bucket owes, in tokens.
func (b Bucket) used(r Rate, now time.Duration) Used {
	if r.None() {
		return Used{}
	}
	return Used{int(float64(max(0, int64(b)-int64(now)))/r.interval + 0.5), r.part(1)}
}
