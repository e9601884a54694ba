package registry

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// subscriptionList is what Memory keeps of a list: entries by At and channel.
type subscriptionList struct {
	entries []Subscription // replaced and not changed
	ends    time.Time
}

// Subscribe is like [Redis.Subscribe].
func (m *Memory) Subscribe(_ context.Context, c SubscriptionChange) (SubscriptionsChanged, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, now := tokensOf{c.User, c.Client}, m.opts.Now()
	kept := slices.DeleteFunc(m.subscriptionsLocked(key), func(s Subscription) bool { return slices.Contains(c.Channels, s.Channel) })
	stamp := now.UnixMicro()
	for _, s := range m.subscribed[key].entries {
		stamp = max(stamp, s.At+1)
	}
	for _, channel := range slices.Compact(slices.Sorted(slices.Values(c.Channels))) {
		kept = append(kept, Subscription{channel, c.Kind, stamp, c.After})
	}
	if c.Kind == Subscribed && countSubscribed(kept) > MaxSubscriptions {
		return SubscriptionsChanged{}, fmt.Errorf("subscriptions of %s%s: %w", c.User, c.Client, ErrTooManySubscriptions)
	}
	expireSome(m.subscribed, func(key tokensOf) { m.subscriptionsLocked(key) })
	ends := now.Add(m.opts.SubscribedTTL)
	m.subscribed[key] = subscriptionList{trimSubscriptions(kept), ends}
	changed := SubscriptionsChanged{Until: ends.UnixMilli()}
	if u := m.userLocked(c.User); u != nil && c.User != "" {
		changed.Clients = u.onlineClients(c.Client)
	}
	return changed, nil
}

// Subscriptions is like [Redis.Subscriptions]. The store loses nothing.
func (m *Memory) Subscriptions(_ context.Context, list []Subscriber) []SubscriptionsOutcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	outcomes := make([]SubscriptionsOutcome, len(list))
	for i, s := range list {
		if s.User != "" {
			outcomes[i].User = m.renewSubscriptionsLocked(tokensOf{user: s.User})
		}
		outcomes[i].Client = m.renewSubscriptionsLocked(tokensOf{s.User, s.Client})
	}
	return outcomes
}

// renewSubscriptionsLocked returns a copy of a list, and renews it.
func (m *Memory) renewSubscriptionsLocked(key tokensOf) []Subscription {
	list := m.subscriptionsLocked(key)
	if len(list) > 0 {
		m.subscribed[key] = subscriptionList{m.subscribed[key].entries, m.opts.Now().Add(m.opts.SubscribedTTL)}
	}
	return list
}

// subscriptionsLocked returns a copy of a list that has not ended.
func (m *Memory) subscriptionsLocked(key tokensOf) []Subscription {
	list, found := m.subscribed[key]
	if !found || !m.opts.Now().Before(list.ends) {
		delete(m.subscribed, key)
		return nil
	}
	return slices.Clone(list.entries)
}

// trimSubscriptions sorts a list and bounds its entries of each sort, of which the newest stay.
func trimSubscriptions(list []Subscription) []Subscription {
	sortSubscriptions(list)
	others := len(list) - countSubscribed(list) - MaxSubscriptions
	return slices.DeleteFunc(list, func(s Subscription) bool {
		if s.Kind == Subscribed {
			return false
		}
		others--
		return others >= 0
	})
}

func countSubscribed(list []Subscription) (n int) {
	for _, s := range list {
		if s.Kind == Subscribed {
			n++
		}
	}
	return n
}
