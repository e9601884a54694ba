package registry

import (
	"context"
	"time"
)

// sender is whose budgets a Spending uses.
type sender struct{ user, address string }

// spent is when the budgets of a sender are full again.
type spent struct{ bytes, channels time.Time }

// Spend is like [Redis.Spend].
func (m *Memory) Spend(_ context.Context, list []Spending) []SpendOutcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, outcomes := m.opts.Now(), make([]SpendOutcome, len(list))
	for i, s := range list {
		key := sender{s.User, s.Address}
		use := m.spent[key]
		use.bytes, use.channels = spend(use.bytes, s.Bytes, now), spend(use.channels, s.Channels, now)
		if s.Bytes.Cost > 0 || s.Channels.Cost > 0 {
			expireSome(m.spent, func(key sender) {
				if use := m.spent[key]; !use.bytes.After(now) && !use.channels.After(now) {
					delete(m.spent, key)
				}
			})
			m.spent[key] = use
		}
		outcomes[i].Owed = Owed{use.bytes.Sub(now), use.channels.Sub(now)}
	}
	return outcomes
}

// spend returns when a budget is full again after a use.
func spend(full time.Time, s Spent, now time.Time) time.Time {
	if full.Before(now) {
		full = now
	}
	next := full.Add(s.Cost)
	if most := now.Add(s.Most); next.After(most) {
		next = most
	}
	if s.Cost <= 0 || next.Before(full) {
		return full
	}
	return next
}
